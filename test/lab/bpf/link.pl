# perl link.pl PINNED_PROGRAM CGROUP PIN: attach the program to the cgroup's connect4 hook through a bpf_link, pinned at PIN.
# bpftool cannot create cgroup links and a compiler is no Debian default, but perl-base is, and perl can make system calls.
use strict;
use warnings;
use Fcntl;

my ( $program, $cgroup, $pin ) = @ARGV;
my %BPF_NUMBER = ( x86_64 => 321, aarch64 => 280 );
my ( $OBJ_PIN, $OBJ_GET, $LINK_CREATE, $CGROUP_INET4_CONNECT ) = ( 6, 7, 28, 10 );

chomp( my $machine = `uname -m` );
my $number = $BPF_NUMBER{$machine} or die "link.pl: no system call number for $machine\n";

sub bpf {
    my ( $what, $command, $attributes ) = @_;
    my $result = syscall( $number, $command, $attributes, length $attributes );
    die "link.pl: could not $what: $!\n" if $result < 0;
    return $result;
}

# union bpf_attr: a path is a 64-bit pointer, everything else here is 32 bits wide.
my $program_fd = bpf( "open $program", $OBJ_GET, pack( "pLL", $program, 0, 0 ) );
sysopen( my $directory, $cgroup, O_RDONLY | O_DIRECTORY ) or die "link.pl: could not open $cgroup: $!\n";
my $link_fd = bpf( "attach to $cgroup", $LINK_CREATE, pack( "L4", $program_fd, fileno $directory, $CGROUP_INET4_CONNECT, 0 ) );
bpf( "pin the link at $pin", $OBJ_PIN, pack( "pLL", $pin, $link_fd, 0 ) );
