"""Programs that act on processes, users, services and the machine."""

from __future__ import annotations

TABLE = r"""
kill, pkill, killall, killall5, xkill, skill, snice, fuser, reptyr :: -l:skip -L:skip --list:skip -0:skip *process
renice :: *process
shutdown, reboot, halt, poweroff, init, telinit, runlevel, wall, swapon, swapoff, losetup, cryptsetup, dmsetup :: \
  +system
mkfs, mke2fs, mkswap, fdisk, sfdisk, cfdisk, gdisk, sgdisk, parted, partprobe, wipefs, blkdiscard, hdparm, \
  badblocks, fsck, e2fsck, tune2fs, resize2fs, xfs_growfs, btrfs, zfs, zpool, lvm, lvremove, lvcreate, vgremove, \
  pvcreate, mdadm, diskutil, mkfs.ext2, mkfs.ext3, mkfs.ext4, mkfs.xfs, mkfs.vfat, mkfs.btrfs, newfs, asr :: +system
mount, umount, fusermount, sshfs, pivot_root, switch_root :: +system *skip
sysctl, modprobe, insmod, rmmod, depmod, kexec, dracut, update-grub, grub-install, update-initramfs, efibootmgr, \
  nvram :: +system
iptables, ip6tables, nft, ufw, firewall-cmd, pfctl, ipfw, tc, brctl, ebtables, conntrack, setenforce, setsebool, \
  apparmor_parser, aa-disable, aa-complain, semanage, restorecon, spctl, csrutil, tccutil, auditctl :: +system
useradd, usermod, userdel, adduser, deluser, groupadd, groupmod, groupdel, gpasswd, passwd, chpasswd, chsh, chfn, \
  vipw, visudo, dscl, pwconv, chage, newusers, loginctl :: +system +privilege
hostnamectl, timedatectl, localectl, networksetup, scutil, systemsetup, nmcli, hwclock, ntpdate, chronyc, pmset, \
  defaults, update-alternatives, ldconfig, alternatives, authselect, resolvectl :: +system
systemctl {status show cat list-units list-unit-files is-active is-enabled is-failed list-timers list-dependencies} \
  :: -n= -o= -p= -t= *skip
systemctl {enable reenable link edit set-default add-wants} :: +system +persist
systemctl {start stop restart reload disable mask unmask kill daemon-reload daemon-reexec isolate reboot poweroff \
  halt suspend rescue emergency set-property revert reset-failed try-restart} :: +system
systemctl :: -H=!network -M= -t= --type= --state= --host=!network --root= --user --system --no-pager --now -q
service, rc-service, rc-update, chkconfig, update-rc.d, initctl, sv, runit, s6-svc, supervisorctl, monit, pm2 :: \
  +system
launchctl {list print blame} :: *skip
launchctl {load bootstrap submit enable kickstart unload bootout disable setenv remove start stop} :: +system \
  +persist
at, batch, atd :: -f=read -t= -q= -l:skip -c:skip -d!delete -r!delete +persist +execute +?dynamic-code *skip
atq :: *skip
atrm :: +persist
sudo :: (-A -b -B -E -H -k -K -l -n -N -P -S -v -V -i -s -e) -u= -g= -h= -p= -C= -r= -t= -T= -U= -D= -R= --user= \
  --group= --host= --prompt= --close-from= --role= --type= --command-timeout= --other-user= --chdir= --chroot= \
  (--preserve-env? --askpass --background --set-home --login --shell --non-interactive --reset-timestamp --stdin \
  --list --validate --edit) strict posix
doas :: (-L -n -s) -C= -u= -a= strict posix
pkexec, runas, gosu, su-exec, setpriv, capsh, nsenter, unshare, chroot, runuser, run0, machinectl, systemd-nspawn, \
  bwrap, firejail, proot, fakeroot, fakechroot, please, sudoedit, sg, newgrp, setcap, setuidgid, chpst, aa-exec, \
  pfexec :: +privilege +execute +?unknown-program
systemd-run, screen, tmux, dtach, abduco, zellij, byobu, daemonize, daemon, start-stop-daemon :: +execute +persist \
  +?unknown-program
gdb, lldb, rr, perf, bpftrace, dtrace, frida, valgrind, ptrace, radare2, r2, tcpdump, tshark, wireshark, gcore :: \
  +execute +?unknown-program
security, secret-tool, kwallet-query, pass, gopass, op, bw, lpass, keyctl, ssh-add, ssh-agent, gpg-agent, vault, \
  sops, age, chamber, keyring, doppler, infisical, credstash, aws-vault, rbw, keepassxc-cli, pinentry, kinit, klist \
  :: +secret +?unknown-program
gpg {--verify --list-keys -k --list-public-keys --fingerprint --version --list-packets}, gpg2 {--verify --list-keys} \
  :: *read
gpg, gpg2 :: +secret +execute +?unknown-option *read
ssh-keygen :: -D=program -f=write -t= -b= -C= -N= -P= -l:read -y!secret -R= -F= -i -e -p -A!system -s!secret -I= -n= \
  -V= -m= -E= -q +write *skip
ssh-keyscan :: -p= -t= -T= -f=read +network *host
ssh-copy-id :: -i=read -p= -o= -f +network +egress +persist *host
hash :: -p=!?shell -d -l -t -r *skip
enable :: -f!execute,?script -n!?shell -a -d -p -s *skip
bind, complete, compgen, compopt :: +?shell *skip
shopt :: -q -p -s!?shell -u!?shell *skip
history, fc :: -c!delete -d!delete -w!write -a -n -r -s!execute,?dynamic-code -e=!execute,?dynamic-code *skip
ipcrm :: +process
tmutil, softwareupdate, xcode-select, installer, pkgutil, kextload, kmutil, bless :: +system
"""
