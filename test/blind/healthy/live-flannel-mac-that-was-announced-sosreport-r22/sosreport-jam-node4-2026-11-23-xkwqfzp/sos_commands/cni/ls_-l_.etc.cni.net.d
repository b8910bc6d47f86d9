total 4
-rw------- 1 root root 660 Nov 23 17:18 10-flannel.conflist
