"""Programs that create, change, move or remove files."""

from __future__ import annotations

__all__ = ["TABLE"]

TABLE = r"""
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
