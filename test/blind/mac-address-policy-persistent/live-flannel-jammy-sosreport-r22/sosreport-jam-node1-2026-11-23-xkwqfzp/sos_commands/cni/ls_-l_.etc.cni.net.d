total 4
-rw------- 1 root root 660 Nov 23 17:17 10-flannel.conflist
