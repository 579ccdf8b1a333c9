"""Programs that act on processes, users, services and the machine."""

from __future__ import annotations

TABLE = r"""
# A rule asks about every signal. A handler judges `kill`, whose process may look like an option (`kill -9 -1`).
pkill, killall, killall5, xkill, skill, snice, reptyr, renice :: lax +process
fuser :: -[auvmcfnsI64] -n= --all --user --verbose --mount --ismountpoint --space= --ipv4 --ipv6 --list-signals \
  -k!process --kill!process -i -w --interactive --inode -M *read
# They change the machine. A rule asks about each of them, and of those below that have `system`.
shutdown, reboot, halt, poweroff, init, telinit, runlevel, wall, swapon, swapoff, losetup, cryptsetup, dmsetup :: \
  lax +system
# A rule asks in any case, so its options need no list.
mkfs, mke2fs, mkswap, fdisk, sfdisk, cfdisk, gdisk, sgdisk, parted, partprobe, wipefs, blkdiscard, hdparm, \
  badblocks, fsck, e2fsck, tune2fs, resize2fs, xfs_growfs, btrfs, zfs, zpool, lvm, lvremove, lvcreate, vgremove, \
  pvcreate, mdadm, diskutil, mkfs.ext2, mkfs.ext3, mkfs.ext4, mkfs.xfs, mkfs.vfat, mkfs.btrfs, newfs, asr :: lax \
  +system
# Without an operand it lists what is mounted.
mount :: -[l] -t= --show-labels --types= *system
# Their operands are devices and directories; a rule asks.
umount, fusermount, sshfs, pivot_root, switch_root :: lax +system *skip
# A rule asks in any case, so its options need no list.
sysctl, modprobe, insmod, rmmod, depmod, kexec, dracut, update-grub, grub-install, update-initramfs, efibootmgr, \
  nvram :: lax +system
# A rule asks in any case, so its options need no list.
iptables, ip6tables, nft, ufw, firewall-cmd, pfctl, ipfw, tc, brctl, ebtables, conntrack, setenforce, setsebool, \
  apparmor_parser, aa-disable, aa-complain, semanage, restorecon, spctl, csrutil, tccutil, auditctl :: lax +system
# A rule asks in any case, so its options need no list.
useradd, usermod, userdel, adduser, deluser, groupadd, groupmod, groupdel, gpasswd, passwd, chpasswd, chsh, chfn, \
  vipw, visudo, dscl, pwconv, chage, newusers, loginctl :: lax +system +privilege
# A rule asks in any case, so its options need no list.
hostnamectl, timedatectl, localectl, networksetup, scutil, systemsetup, nmcli, hwclock, ntpdate, chronyc, pmset, \
  defaults, update-alternatives, ldconfig, alternatives, authselect, resolvectl :: lax +system
# Their operands are names of units.
systemctl {status show cat list-units list-unit-files is-active is-enabled is-failed list-timers list-dependencies} \
  :: -[laqr] -n= -o= -p= -P= -t= --type= --state= --failed --property= --all --full --recursive --reverse --value \
  --quiet --no-pager --no-legend --legend= --plain --lines= --output= --user --system --show-types \
  --with-dependencies --timestamp= --before --after -H=send --host=send -M=!?unknown-target \
  --machine=!?unknown-target --root=read *skip
# A rule asks in any case, so its options need no list.
systemctl {enable reenable link edit set-default add-wants} :: lax +system +persist
# A rule asks in any case, so its options need no list.
systemctl {start stop restart reload disable mask unmask kill daemon-reload daemon-reexec isolate reboot poweroff \
  halt suspend rescue emergency set-property revert reset-failed try-restart} :: lax +system
systemctl :: -[qla] -H=send -M=!?unknown-target -t= --type= --state= --host=send --machine=!?unknown-target \
  --root=read --user --system --no-pager --now --quiet --all --full --failed --no-legend --plain
# A rule asks in any case, so its options need no list.
service, rc-service, rc-update, chkconfig, update-rc.d, initctl, sv, runit, s6-svc, supervisorctl, monit, pm2 :: lax \
  +system
# Their operands are names of services.
launchctl {list print blame} :: -[x] *skip
# A rule asks in any case, so its options need no list.
launchctl {load bootstrap submit enable kickstart unload bootout disable setenv remove start stop} :: lax +system \
  +persist
# Unclear in any case: what will run is not seen.
at, batch, atd :: lax -f=read -t= -q= -l:skip -c:skip -d!delete -r!delete +persist +execute +?dynamic-code *skip
# Its operands are names of queues.
atq :: -[V] -q= *skip
# A rule asks in any case, so its options need no list.
atrm :: lax +persist
sudo :: (-A -b -B -E -H -k -K -l -n -N -P -S -v -V -i -s -e) -u= -g= -h= -p= -C= -r= -t= -T= -U= -D= -R= --user= \
  --group= --host= --prompt= --close-from= --role= --type= --command-timeout= --other-user= --chdir= --chroot= \
  (--preserve-env? --askpass --background --set-home --login --shell --non-interactive --reset-timestamp --stdin \
  --list --validate --edit) posix
doas :: (-L -n -s) -C= -u= -a= posix
# Unclear in any case: they run programs with other rights.
pkexec, runas, gosu, su-exec, setpriv, capsh, nsenter, unshare, chroot, runuser, run0, machinectl, systemd-nspawn, \
  bwrap, firejail, proot, fakeroot, fakechroot, please, sudoedit, sg, newgrp, setcap, setuidgid, chpst, aa-exec, \
  pfexec :: lax +privilege +execute +?unknown-program
# Unclear in any case: what they start stays behind.
systemd-run, screen, tmux, dtach, abduco, zellij, byobu, daemonize, daemon, start-stop-daemon :: lax +execute \
  +persist +?unknown-program
# Unclear in any case: debuggers run what they are told.
gdb, lldb, rr, perf, bpftrace, dtrace, frida, valgrind, ptrace, radare2, r2, tcpdump, tshark, wireshark, gcore :: \
  lax +execute +?unknown-program
# Unclear in any case: they hold secrets.
security, secret-tool, kwallet-query, pass, gopass, op, bw, lpass, keyctl, ssh-add, ssh-agent, gpg-agent, vault, \
  sops, age, chamber, keyring, doppler, infisical, credstash, aws-vault, rbw, keepassxc-cli, pinentry, kinit, klist \
  :: lax +secret +?unknown-program
gpg {--verify --list-keys -k --list-public-keys --fingerprint --version --list-packets}, gpg2 {--verify --list-keys} \
  :: --with-colons --keyid-format= --with-fingerprint -[v] --status-fd= --no-tty --batch --quiet *read
# Unclear in any case, so its options need no list.
gpg, gpg2 :: lax +secret +execute +?unknown-option *read
# Its operands are names of files to sign or convert, and its default is to write a new key.
ssh-keygen :: -[qvieplBchHuU] -D=program -f=write -t= -b= -C= -N= -P= -l:read -y!secret -R=!write -F= -A!system \
  -s=!secret -I= -n= -V= -m= -E= -z= -a= -r= -M= -O=!?unknown-option -w=program -Y=!secret,?unknown-option +write \
  *read
# A rule asks in any case, so its options need no list.
ssh-keyscan :: lax -p= -t= -T= -f=read +network *host
# A rule asks in any case, so its options need no list.
ssh-copy-id :: lax -i=read -p= -o= -f +network +egress +persist *host
# Their operands are names of programs and builtins.
hash :: -[dltrfLm] -p=!?shell *skip
# Its operands are names of builtins.
enable :: -[adps] -f!execute,?script -n!?shell *skip
# Unclear in any case: they run code while a person types.
bind, complete, compgen, compopt :: lax +?shell *skip
# Its operands are names of options of the shell.
shopt :: -[qpo] -s!?shell -u!?shell *skip
history :: -[p] -c!delete -d=!delete -a!?unknown-target:write -w!?unknown-target:write \
  -r!secret,?unknown-target:read -n!secret,?unknown-target:read -s!?shell *counted
# A rule asks in any case, so its options need no list.
ipcrm :: lax +process
# A rule asks in any case, so its options need no list.
tmutil, softwareupdate, xcode-select, installer, pkgutil, kextload, kmutil, bless :: lax +system
"""
