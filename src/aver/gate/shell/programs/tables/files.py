"""Programs for files: first those that only read (with the options that do more), then those that change files."""

from __future__ import annotations

TABLE = r"""
cat, tac, nl, rev, fold, fmt, expand, unexpand, cksum, sum, zcat, bzcat, xzcat, zstdcat, gzcat, lz4cat :: *read
md5sum, sha1sum, sha224sum, sha256sum, sha384sum, sha512sum, b2sum, md5, shasum, b3sum :: -a= --algorithm= *read
base64, base32, basenc :: -w= --wrap= -b= -i=read -o=write --output=write *read
head, tail :: -n= -c= -s= --lines= --bytes= --pid= --sleep-interval= --max-unchanged-stats= *read
wc :: --files0-from=read --total= *read
od :: -A= -j= -N= -S= -t= -w? *read
hexdump, hd :: -e= -f=read -n= -s= *read
xxd :: -c= -g= -l= -n= -o= -s= -R= 1read 2write
strings :: -n= -t= -e= -T= -U= *read
paste :: -d= --delimiters= *read
join :: -t= -o= -e= -j= -1= -2= -a= -v= *read
cmp :: -i= -n= --ignore-initial= --bytes= *read
pr, comm :: *read
cut :: -b= -c= -d= -f= --bytes= --characters= --delimiter= --fields= --output-delimiter= *read
tr, basename, dirname, seq, expr, sleep, yes, factor, false, true, :, echo, numfmt, tput, cal, ncal :: *skip
column :: -c= -s= -o= -N= -R= -H= -O= -T= -E= -W= --table-columns= --separator= *read
colrm, col, ul, look :: *read
sort :: -k= -t= -S= -T= -o=write --output=write --key= --field-separator= --buffer-size= --parallel= --batch-size= \
  --compress-program=program --files0-from=!?unknown-target --random-source=read --temporary-directory= --sort= *read
uniq :: -f= -s= -w= --skip-fields= --skip-chars= --check-chars= --group? --all-repeated? 1read 2write
shuf :: -e -i= -n= -o=write --output=write --random-source=read --input-range= --head-count= *read
tsort, iconv :: -f= -t= -c -o=write --output=write --from-code= --to-code= *read
ts :: *skip
pv :: -L= -s= -N= -i= -w= -H= -F= -D= -B= -d= -R= -P=write --pidfile=write *read
grep, egrep, fgrep, zgrep, bzgrep, xzgrep :: -e=~ -f=~read --regexp=~ --file=~read -m= -A= -B= -C= -d= -D= \
  --max-count= --after-context= --before-context= --context= --include=sought --exclude= --exclude-dir= \
  --exclude-from=read --label= --color? --colour? --binary-files= --directories= -r:tree -R:tree --recursive:tree \
  --dereference-recursive:tree 1skip *read
rg :: -e=~ -f=~read --regexp=~ --file=~read --files~ --type-list~ -g=sought -t= -T= -A= -B= -C= -m= -j= -M= -r= -d= \
  -E= --glob=sought --iglob=sought --type= --type-not= --type-add= --after-context= --before-context= --context= \
  --max-count= --max-depth= --max-columns= --max-filesize= --replace= --threads= --sort= --sortr= --color= --colors= \
  --encoding= --engine= --path-separator= --field-match-separator= --context-separator= --ignore-file=read \
  --pre=program --pre-glob= --hostname-bin=program --hyperlink-format= 1skip *read .read
ag :: -G= -A? -B? -C? -m= --depth= --ignore= --ignore-dir= --path-to-ignore=read --pager=run -p=read 1skip *read \
  .read
ack :: -A? -B? -C? -m= --type= --ignore-dir= --ignore-file= --ackrc=program --pager=run --output=code 1skip *read \
  .read
ls, dir, vdir, exa, eza, lsd :: --ignore= --hide= --sort= --time= --time-style= --color? --width= --level= \
  --block-size= --format= --indicator-style= *read .read
tree :: -L= -P= -I= -o=write -H= -T= --charset= --filelimit= --timefmt= --gitfile=read --infofile=read *read .read
du :: -d= -t= -B= -X=read --max-depth= --threshold= --exclude= --exclude-from=read \
  --files0-from=read --time? *read .read
df :: -B= -t= -x= --output? --type= --exclude-type= *skip
stat :: -c= --format= --printf= *read
file :: -e= -F= -P= -f=!?unknown-target -m=read --files-from=!?unknown-target --magic-file=read --exclude= \
  --extension -C!write \
  --compile!write *read
readlink, realpath :: --relative-to= --relative-base= *read
namei, lsattr, getfattr, getfacl :: *read
diff, colordiff :: -U= -C= -x= -X=read -I= -F= -W= -S= -L= -D= --unified? --context? --exclude= --exclude-from=read \
  --ignore-matching-lines= --label= --width= --tabsize= --to-file=read --from-file=read --color? --palette= *read
wdiff, icdiff, difft :: *read
sdiff, diff3 :: -o=write --output=write -w= --diff-program=program *read
delta, diffstat :: -w= -p= --width= --pager=run *read
jq, gojq, jaq :: -f=~read --from-file=~read --arg== --argjson== --slurpfile==read --rawfile==read --indent= -L= \
  1filter *read
yq :: -i:edit --inplace:edit -o= -p= -P -s!write --split-exp!write --output-format= --input-format= --from-file=read \
  1filter *read
gron :: *read
xmllint :: --xpath= --output=write -o=write --schema=read --dtdvalid=read --relaxng=read --encode= --format \
  --noent!?unknown-target --xinclude!?unknown-target --loaddtd!?unknown-target \
  --dtdattr!?unknown-target --valid!?unknown-target --postvalid!?unknown-target --catalogs!?unknown-target *read
csvcut, csvlook, csvstat :: -c= -d= *read
csvgrep :: -c= -d= -m= -r= -f=read *read
less :: -o=write -O=write --log-file=write --LOG-FILE=write -k=program --lesskey-file=program --lesskey-src=program \
  -b= -h= -j= -p= -P= -t= -T= -x= -y= -z= --pattern= --prompt= --tag= --tag-file=read *page
more :: -n= --lines= *page
most :: *page
bat, batcat :: -l= -r= -H= --language= --line-range= --theme= --style= --color= --paging= --pager=run --tabs= \
  --wrap= *read
man :: -P=run --pager=run -H?run --html?run -C=read -M= -m= -S= -s= -L= -R= -l:read *skip
info :: -o=write --output=write --dribble=write --restore=program --init-file=program -f= *skip
whatis, apropos, help :: *skip
date :: -d= -f=read -r= -s=!system -I? --date= --file=read --reference= --set=!system --iso-8601? --rfc-3339= -v= -j \
  *clock
hostname :: -F!system --file!system -b!system *system
domainname, nisdomainname :: *system
pwd, whoami, id, groups, users, who, w, last, logname, tty, arch, nproc, uptime, free, getconf, locale, lscpu, \
  lsmem, lspci, lsusb, lsblk, lsb_release, sw_vers, vmstat, iostat, mpstat, sar, uname, jobs, times, dirs, umask, \
  ulimit, clear, reset :: *skip
hostid, pgrep, pidof, pstree, top, htop, lsof, ss, netstat, finger, findmnt, blkid :: *skip
ps :: -o= -p= -u= -U= -C= -G= -g= -t= --sort= --format= --pid= --user= --ppid= *shown
getent {passwd group shadow gshadow services protocols networks ethers rpc aliases initgroups netgroup} :: *skip
getent {hosts ahosts ahostsv4 ahostsv6} :: +network *send
which, whereis, type, whence, where :: *skip
nm, objdump :: --plugin=program -M= -j= -t= -m= *read
readelf, size, otool, addr2line, c++filt, dwarfdump, pdfinfo :: *read
lipo :: -output=write onedash *read
pdftotext :: 1read 2write
zipinfo, lsar, rpm2cpio, mediainfo, tokei, sloccount :: *read .read
cloc :: --out=write --report-file=write --extract-with=run --config=program --read-lang-def=read --list-file=read \
  *read .read
scc :: -o=write --output=write -f= --format= *read .read
wait, shift, break, continue, fg, bg, disown, caller, suspend, unalias :: *skip
inotifywait :: -o=write --outfile=write --fromfile=read -e= -t= --event= --timeout= --format= *read
ldd :: *program
dmesg :: -C!system -c!system --clear!system -n=!system *skip
journalctl :: -u= -n= -p= -t= -S= -U= -o= --unit= --since= --until= --lines= --output= \
  --cursor-file=write --vacuum-size=!system \
  --vacuum-time=!system --vacuum-files=!system --rotate!system --flush!system *skip
ifconfig, route, arp :: 1skip *system
nvidia-smi, sensors, lshw, hwinfo, acpi, xdpyinfo, fc-list, infocmp :: *skip

touch :: -d= -t= -r=read --date= --reference=read --time= *write
mkdir, mkfifo, mknod :: -m= -Z? --mode= *write
rmdir, unlink, rm, srm, trash, trash-put, rimraf, del-cli :: --interactive? --preserve-root? *delete
shred, wipe :: -n= -s= --iterations= --size= --random-source=read *delete
tee, sponge :: --output-error? *write
truncate :: -s= -r=read --size= --reference=read *write
fallocate :: -l= -o= --length= --offset= *write
split :: -l= -b= -n= -C= -a= -t= --lines= --bytes= --number= --line-bytes= --suffix-length= --additional-suffix= \
  --filter=run 1read 2write @write
csplit :: -f=write -b= -n= --prefix=write --suffix-format= --digits= 1read *skip @write
mktemp :: -p= -t= --tmpdir? --suffix= *skip
gzip, bzip2, xz, zstd, lz4, pigz, pbzip2, compress, lzma :: -S= -T? -b? -p? -D=read -o=write -c:read --stdout:read \
  --to-stdout:read -l:read --list:read -t:read --test:read *edit
gunzip, bunzip2, unxz, unzstd, unlz4, unlzma, uncompress :: -S= -o=write -c:read --stdout:read -l:read -t:read *edit
zip :: -b= -n= -t= -P= -T!execute,?code --unzip-command=run --temp-path= 1write *read
7z, 7za, 7zr, rar, unrar :: -o?write -p? +?unknown-target +write *read
ar :: 1skip *edit
cpio :: -F=edit -I=read -O=write -D= --to-stdout -E=read --rsh-command=program -i!write,?unknown-target \
  --extract!write,?unknown-target -p!write,?unknown-target *skip
setfacl, chattr, setfattr, xattr, chflags :: -m= -x= -R -n= -v= -M=read -b -k *edit
ed, ex, vi, vim, nvim, view, nano, emacs, emacsclient, pico, joe, micro, code, subl :: +?code +execute *edit
rename, prename, perl-rename, mmv, vidir :: +execute +?code *skip
mogrify, optipng, jpegoptim, svgo, fdupes, dos2unix, unix2dos, indent :: *edit
convert, magick, cwebp, pngquant, pandoc, wkhtmltopdf, inkscape, ffmpeg, sox :: +execute +?unknown-program *read
nohup, eatmydata, catchsegv, linux32, linux64 :: strict posix *command
stdbuf :: -i= -o= -e= --input= --output= --error= strict posix *command
setsid :: (-c -f -w --ctty --fork --wait) strict posix *command
unbuffer :: (-p) strict posix *command
xvfb-run :: (-a -l --auto-servernum --listen-tcp) -e=write -f=read -n= -p= -s= -w= --error-file=write \
  --auth-file=read --server-num= --xauth-protocol= --server-args= --wait= strict posix *command
nice :: -n= --adjustment= strict posix *command
ionice :: (-t --ignore) -c= -n= -p=!process -P=!process -u=!process --class= --classdata= strict posix *command
timeout, gtimeout :: (-v -f -p --foreground --preserve-status --verbose) -s= -k= --signal= --kill-after= strict \
  posix 1skip *command
chrt :: (-a -b -f -i -o -r -d -R -v --batch --fifo --idle --other --rr --deadline) -T= -P= -D= -p!process strict \
  posix 1skip *command
taskset :: (-a -c --all-tasks --cpu-list) -p!process --pid!process strict posix 1skip *command
time, gtime :: (-p -a -v -q -l -h) -f= -o=write --format= --output=write --append --verbose strict posix *command
caffeinate :: (-d -i -m -s -u) -t= -w= strict posix *command
strace :: (-f -F -c -C -d -h -i -k -n -N -q -r -t -T -v -V -w -x -y -z -Z -A -D --follow-forks --summary) -o=write \
  -e= -p=!process -s= -u=!privilege -U= -E= -P= -a= -I= -O= -S= -X= -b= --output=write --trace= --string-limit= \
  strict posix *command
flock :: (-s -x -e -u -n -o -F -v --shared --exclusive --unlock --nonblock --close --verbose) -w= -E= -c=run \
  --timeout= --conflict-exit-code= --command=run strict posix 1write *command
faketime :: (-f -m --exclude-monotonic) -p= --date-prog=program strict posix 1skip *command
entr :: (-a -c -d -n -p -r -x -z) -s!execute,?dynamic-code strict posix *command
chronic, ifne :: (-v -e -n) strict posix *command
"""
