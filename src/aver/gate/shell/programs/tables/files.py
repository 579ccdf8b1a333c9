"""Programs for files: first those that only read (with the options that do more), then those that change files."""

from __future__ import annotations

TABLE = r"""
cat :: -[AbeEnstTuvl] --show-all --number-nonblank --show-ends --number --squeeze-blank --show-tabs \
  --show-nonprinting gnu *read
zcat, bzcat, xzcat, zstdcat, gzcat, lz4cat :: -[fqvk] --force --quiet --verbose *read
tac :: -[br] -s= --before --regex --separator= gnu *read
nl :: -[p] -b= -d= -f= -h= -i= -l= -n= -s= -v= -w= --body-numbering= --section-delimiter= --footer-numbering= \
  --header-numbering= --line-increment= --join-blank-lines= --number-format= --no-renumber --number-separator= \
  --starting-line-number= --number-width= gnu *read
rev :: -[0] --zero gnu *read
fold :: -[bs] -w= --bytes --spaces --width= gnu *read
fmt :: -[cstu] -p= -w= -g= -l= -d= -n --crown-margin --prefix= --split-only --tagged-paragraph --uniform-spacing \
  --width= --goal= gnu *read
expand, unexpand :: -[ia] -t= --initial --all --first-only --tabs= gnu *read
cksum, sum :: -[crswz] -a= -l= -o= --algorithm= --base64 --check --length= --raw --tag --untagged --zero \
  --ignore-missing --quiet --status --strict --warn --debug --sysv gnu *read
# With `-c` the file names other files, whose sums are compared: nothing of them is shown.
md5sum, sha1sum, sha224sum, sha256sum, sha384sum, sha512sum, b2sum, md5, shasum, b3sum :: -[bctzwrqp] -a= -l= -s= \
  --algorithm= --binary --check --length= --tag --text --zero --ignore-missing --quiet --status --strict --warn \
  --no-names --raw --portable --UNIVERSAL --01 gnu *read
base64, base32, basenc :: -[dD] -w= -b= -i?read -o=write --decode --ignore-garbage --wrap= --break= --input=read \
  --output=write --base64 --base64url --base32 --base32hex --base16 --base2msbf --base2lsbf --z85 gnu *read
head, tail :: -[qvzfFr] -n= -c= -s= -b= --lines= --bytes= --quiet --silent --verbose --zero-terminated --follow? \
  --retry --pid= --sleep-interval= --max-unchanged-stats= gnu *read
wc :: -[cmlLw] --bytes --chars --lines --max-line-length --words --total= --debug --files0-from=contents gnu *read
od :: -[vabcdfiloshxBDeFHILOX] -A= -j= -N= -S= -t= -w? --address-radix= --endian= --skip-bytes= --read-bytes= \
  --strings? --format= --output-duplicates --width? --traditional gnu *read
hexdump, hd :: -[bcCdoxvX] -L? -e= -f=read -n= -s= --one-byte-octal --one-byte-char --canonical --two-bytes-decimal \
  --two-bytes-octal --two-bytes-hex --one-byte-hex --color? --format= --format-file=read --length= --skip= \
  --no-squeezing gnu *read
xxd :: -[abCEeipruvdh] -c= -g= -l= -n= -o= -s= -R= -cols= -groupsize= -len= -name= -seek= -ps -revert -plain \
  -postscript -include -bits -autoskip -uppercase -decimal -capitalize onedash 1read 2write
strings :: -[adfoUvw] -n= -t= -e= -T= -s= -U= --all --data --print-file-name --bytes= --radix= --target= --encoding= \
  --unicode= --output-separator= --include-all-whitespace gnu *object
paste :: -[sz] -d= --delimiters= --serial --zero-terminated gnu *read
join :: -[iz] -t= -o= -e= -j= -1= -2= -a= -v= --check-order --nocheck-order --header --ignore-case --zero-terminated \
  gnu *read
cmp :: -[blsxzh] -i= -n= --print-bytes --ignore-initial= --verbose --bytes= --quiet --silent gnu *read
pr :: -[acdFfJmrtTvp] -D= -e? -h= -i? -l= -n? -N= -o= -s? -S? -w= -W= -L= --columns= --across --show-control-chars \
  --double-space --date-format= --expand-tabs? --form-feed --header= --output-tabs? --join-lines --length= --merge \
  --number-lines? --first-line-number= --indent= --no-file-warnings --separator? --sep-string? --omit-header \
  --omit-pagination --show-nonprinting --width= --page-width= gnu *read
comm :: -[123zi] --check-order --nocheck-order --output-delimiter= --total --zero-terminated gnu *read
cut :: -[nswz] -b= -c= -d= -f= --bytes= --characters= --delimiter= --fields= --complement --only-delimited \
  --output-delimiter= --zero-terminated --whitespace-delimited gnu *read
# Their operands are texts, numbers and sets of characters, which they print or compute with.
tr, basename, dirname, seq, expr, sleep, yes, factor, false, true, :, numfmt, cal, ncal, tput :: -[cCdstazhwu1jym3] \
  -f= -s= -S -T= -A= -B= -d= -n= --complement --delete --squeeze-repeats --truncate-set1 --multiple --suffix= --zero \
  --format= --separator= --equal-width --exponents --debug --delimiter= --field= --from= --from-unit= --grouping \
  --header? --invalid= --padding= --round= --to= --to-unit= --zero-terminated --one --three --monday --sunday --year \
  --months= --color? gnu *skip
# It prints its words, whatever they begin with.
echo :: literal *skip
column :: -[tdeLJxnX] -c= -s= -o= -l= -N= -R= -H= -O= -T= -E= -W= -r= -i= -p= -C= --table --table-name= \
  --table-order= --table-columns= --table-columns-limit= --table-noextreme= --table-noheadings --table-header-repeat \
  --table-hide= --table-right= --table-truncate= --table-wrap= --table-column= --keep-empty-lines --json --tree= \
  --tree-id= --tree-parent= --output-width= --output-separator= --separator= --fillrows --columns= gnu *read
# Their operands are numbers of columns.
colrm :: *skip
col, ul, look :: -[bfpxhidat] -l= -t= -T= -n= --no-backspaces --fine --pass --tabs --spaces --lines= --terminal= \
  --indicated --alternative --ignore-case --terminate= gnu *read
sort :: -[bdfghiMmnRrsuVz] -c? -C -k= -t= -S= -T=template -o=write --ignore-leading-blanks --dictionary-order \
  --ignore-case --general-numeric-sort --ignore-nonprinting --month-sort --human-numeric-sort --numeric-sort \
  --random-sort --reverse --version-sort --check? --debug --merge --stable --unique --zero-terminated --output=write \
  --key= --field-separator= --buffer-size= --parallel= --batch-size= --compress-program=program \
  --files0-from=!?unknown-target --random-source=read --temporary-directory=template --sort= gnu *read
uniq :: -[cdDiuz] -f= -s= -w= --count --repeated --all-repeated? --skip-fields= --group? --ignore-case --skip-chars= \
  --unique --zero-terminated --check-chars= gnu 1read 2write
shuf :: -[rz] -e:skip -i= -n= -o=write --echo:skip --input-range= --head-count= --output=write --random-source=read \
  --repeat --zero-terminated gnu *read
tsort, iconv :: -[cls] -f= -t= -o=write --output=write --from-code= --to-code= --list --silent --verbose \
  --byte-subst= --unicode-subst= --widechar-subst= gnu *read
# Its operand is a format of dates.
ts :: -[rism] *skip
pv :: -[ptTeIrabkqncWfvlgS0] -L= -s= -N= -i= -w= -H= -F= -D= -B= -d= -R= -A= -m= -x= -E? -Z= -o=write -U=write -Y -K \
  -X -P=write --pidfile=write --output=write --progress --timer --eta --rate --bytes --quiet --wait --numeric \
  --line-mode --size= --name= --interval= --width= --height= --rate-limit= --format= *read
grep, egrep, fgrep, zgrep, bzgrep, xzgrep, zstdgrep :: -[EFGPiywxzsvVbnHhoqaILlcTZUuypO] -e=~ -f=~read -m= -A= -B= \
  -C= -d= -D= -r:tree -R:tree -S --regexp=~ --file=~read --extended-regexp --fixed-strings --basic-regexp \
  --perl-regexp --ignore-case --no-ignore-case --word-regexp --line-regexp --null-data --no-messages --invert-match \
  --max-count= --byte-offset --line-number --line-buffered --with-filename --no-filename --label= --only-matching \
  --quiet --silent --binary-files= --text --directories= --devices= --recursive:tree --dereference-recursive:tree \
  --include=sought --exclude= --exclude-from=read --exclude-dir= --include-dir= --files-without-match \
  --files-with-matches --count --initial-tab --null --unix-byte-offsets --before-context= --after-context= \
  --context? --group-separator= --no-group-separator --color? --colour? --binary gnu 1skip *read
rg :: -[iSswxvFPUcnNlLohHIqzZu0abpV] -e=~ -f=~read -g=sought -t= -T= -A= -B= -C= -m= -j= -M= -r= -d= -E= --regexp=~ \
  --file=~read --files~ --type-list~ --ignore-case --smart-case --case-sensitive --word-regexp --line-regexp \
  --invert-match --fixed-strings --pcre2 --multiline --multiline-dotall --count --count-matches --line-number \
  --no-line-number --files-with-matches --files-without-match --only-matching --no-filename --with-filename --quiet \
  --search-zip --unrestricted --null --null-data --byte-offset --text --binary --pretty --hidden --no-hidden \
  --no-ignore --no-ignore-vcs --no-ignore-parent --no-ignore-global --no-ignore-dot --no-ignore-exclude \
  --no-ignore-files --no-ignore-messages --ignore --ignore-vcs --follow --no-follow --heading --no-heading --column \
  --no-column --vimgrep --json --stats --trim --no-trim --crlf --auto-hybrid-regex --one-file-system --no-messages \
  --no-config --debug --trace --passthru --pcre2-version --no-unicode --unicode --block-buffered --line-buffered \
  --mmap --no-mmap --max-columns-preview --glob-case-insensitive --require-git --no-require-git --sort-files \
  --stop-on-nonmatch --include-zero --no-context-separator --no-encoding --glob=sought --iglob=sought --type= \
  --type-not= --type-add= --type-clear= --after-context= --before-context= --context= --max-count= --max-depth= \
  --maxdepth= --max-columns= --max-filesize= --replace= --threads= --sort= --sortr= --color= --colors= --encoding= \
  --engine= --path-separator= --field-match-separator= --field-context-separator= --context-separator= \
  --ignore-file=read --dfa-size-limit= --regex-size-limit= --generate= --pre=program --pre-glob= \
  --hostname-bin=program --hyperlink-format= 1skip *read .read
ag :: -[iscwvQlLoFfHhaUtu0DnrRSz] -G=sought -A? -B? -C? -m= -g= -W= --ignore-case --smart-case --case-sensitive \
  --word-regexp --invert-match --literal --files-with-matches --files-without-matches --only-matching --follow \
  --nofollow --heading --noheading --filename --nofilename --hidden --all-types --all-text --skip-vcs-ignores \
  --unrestricted --null --debug --numbers --nonumbers --color --nocolor --column --count --stats --vimgrep --ackmate \
  --group --nogroup --break --nobreak --max-count= --depth= --after? --before? --context? --ignore= --ignore-dir= \
  --path-to-ignore=read --pager=run -p=read --file-search-regex=sought --width= 1skip *read .read
ack :: -[iISwvQlLohHcsnrRxakfg1] -A? -B? -C? -m= -g= --ignore-case --smart-case --word-regexp --invert-match \
  --literal --files-with-matches --files-without-matches --with-filename --no-filename --count --column --heading \
  --noheading --nocolor --color --group --nogroup --follow --nofollow --noenv --type= --ignore-dir= --ignore-file= \
  --python --js --ts --go --java --ruby --perl --cc --cpp --html --css --json --yaml --sql --shell --rust \
  --files-from=!?unknown-target --ackrc=program --pager=run --output=code 1skip *read .read
ls, dir, vdir :: -[aAbBcCdDeEfFgGhHiklLmnNoOpqQrRsStuUvWxXyZ1] -I= -w= -T? --all --almost-all --author --escape \
  --ignore-backups --directory --dired --classify? --file-type --full-time --group-directories-first --no-group \
  --human-readable --si --dereference-command-line --dereference-command-line-symlink-to-dir --hyperlink? --inode \
  --kibibytes --dereference --numeric-uid-gid --literal --hide-control-chars --show-control-chars --quote-name \
  --quoting-style= --reverse --recursive --size --context --zero --ignore= --hide= --sort= --time= --time-style= \
  --tabsize= --color? --width= --block-size= --format= --indicator-style= gnu *read .read
exa, eza, lsd :: -[1lGRTxFaAdDrShHimUubBgnNSOXoZ] -s= -t= -L= -I= -w= -A --oneline --long --grid --across --recurse \
  --tree --classify? --all --almost-all --list-dirs --only-dirs --only-files --reverse --header --inode --links \
  --modified --accessed --created --changed --binary --bytes --group --git --git-ignore --git-repos --icons? \
  --no-permissions --no-filesize --no-user --no-time --octal-permissions --extended --blocks --numeric --sort= \
  --time= --level= --ignore-glob= --color? --colour? --color-scale? --time-style= --group-directories-first \
  --hyperlink --depth= --date= --icon= --size= --permission= --total-size --width= *read .read
# Its operands are patterns for names, which it looks up in a list of all files.
locate, mlocate, plocate :: -[AbcepiLHPqSsw0] -d=contents -l= -n= -r= --all --basename --count --existing --follow \
  --nofollow --ignore-case --limit= --null --quiet --regexp= --regex --statistics --wholename \
  --database=contents gnu *skip
tree :: -[adflxqNpugshDFivtcUrJXSnCAQ] -L= -P= -I= -o=write -H= -T= -R --charset= --filelimit= --timefmt= \
  --gitfile=contents --infofile=contents --gitignore --info --fromfile:contents --fromtabfile:contents --noreport \
  --dirsfirst --filesfirst --sort= --inodes --device --si --du --matchdirs --ignore-case --prune --nolinks \
  --metafirst --hintro=contents --houtro=contents --compress= --hyperlink --scheme= --authority= --opt-toggle --sort \
  *read .read
du :: -[0abcDHhklLmPSsxnrIA] -d= -t= -B= -X=contents --null --all --apparent-size --bytes --total --dereference-args \
  --human-readable --inodes --dereference --count-links --no-dereference --separate-dirs --si --summarize \
  --one-file-system --block-size= --time-style= --max-depth= --threshold= --exclude= --exclude-from=contents \
  --files0-from=contents --time? gnu *read .read
# Its operands name file systems: it shows how full they are, nothing of their files.
df :: -[aHhiklPTvgmnbYI] -B= -t= -x= --all --human-readable --si --inodes --local --no-sync --portability --sync \
  --total --print-type --block-size= --output? --type= --exclude-type= gnu *skip
stat :: -[LflsxFrqn] -c= -t? --dereference --file-system --cached= --terse --format= --printf= gnu *read
file :: -[bcdiIkLhnN0prsSvzZlE] -e= -F= -P= -f=contents!?unknown-target -m=program --brief --checking-printout --mime \
  --mime-type --mime-encoding --apple --extension --keep-going --list --dereference --no-dereference --no-buffer \
  --no-pad --print0 --preserve-date --raw --special-files --no-sandbox --uncompress --uncompress-noreport --debug \
  --files-from=contents!?unknown-target --magic-file=program --exclude= --exclude-quiet= --parameter= --separator= \
  -C!write --compile!write gnu *read
readlink, realpath :: -[femnqsvzLP] --canonicalize --canonicalize-existing --canonicalize-missing --no-newline \
  --quiet --silent --verbose --zero --logical --physical --strip --no-symlinks --relative-to= --relative-base= gnu \
  *read
namei :: -[xmolnvZ] --mountpoints --modes --owners --long --nosymlinks --vertical --context gnu *read
lsattr, getfattr, getfacl :: -[RVadlvphLPhcestnE] -n= -m= -e= --name= --match= --dump --recursive --absolute-names \
  --only-values --no-dereference --access --default --omit-header --all-effective --tabular --numeric gnu *read
diff, colordiff :: -[qscuenypTtlrNPiEZbwBadHv] -U= -C= -x= -X=read -I= -F= -W= -S= -L= -D= --normal --brief \
  --report-identical-files --ed --rcs --side-by-side --left-column --suppress-common-lines --show-c-function \
  --show-function-line= --expand-tabs --initial-tab --suppress-blank-empty --paginate!execute,?script --recursive \
  --no-dereference --new-file --unidirectional-new-file --ignore-file-name-case --no-ignore-file-name-case \
  --starting-file= --ignore-case --ignore-tab-expansion --ignore-trailing-space --ignore-space-change \
  --ignore-all-space --ignore-blank-lines --text --strip-trailing-cr --ifdef= --line-format= --old-line-format= \
  --new-line-format= --unchanged-line-format= --old-group-format= --new-group-format= --unchanged-group-format= \
  --changed-group-format= --minimal --horizon-lines= --speed-large-files --unified? --context? --exclude= \
  --exclude-from=read --ignore-matching-lines= --label= --width= --tabsize= --to-file=read --from-file=read --color? \
  --palette= --no-color gnu *read
wdiff :: -[123inslptaCd] -w= -x= -y= -z= --no-deleted --no-inserted --no-common --ignore-case --statistics \
  --auto-pager --printer --terminal --less-mode --start-delete= --end-delete= --start-insert= --end-insert= *read
icdiff :: -[WrNumg] -U= -L= --cols= --show-all-spaces --line-numbers --recursive --strip-trailing-cr --head= --tail= \
  --no-bold --label= --whole-file --unified= --encoding= *read
difft :: --color= --width= --display= --tab-width= --context= --language= --syntax-highlight= --exit-code \
  --strip-cr= --ignore-comments --skip-unchanged --missing-as-empty --background= --override= *read
sdiff, diff3 :: -[iEZbWBalstdHAe3xXmT] -I= -o=write -w= -L= --output=write --ignore-case --ignore-tab-expansion \
  --ignore-trailing-space --ignore-space-change --ignore-all-space --ignore-blank-lines --ignore-matching-lines= \
  --strip-trailing-cr --text --width= --left-column --suppress-common-lines --expand-tabs --tabsize= --minimal \
  --speed-large-files --show-all --ed --show-overlap --easy-only --overlap-only --merge --initial-tab --label= \
  --diff-program=program gnu *read
delta, diffstat :: -[nscCfgklNrSuzqvbmtTo] -w= -p= -d= -D= -e= -E= -f= -F= -o=write --width= --pager=run --paging= \
  --side-by-side --line-numbers --color-only --dark --light --navigate --features= --syntax-theme= --config=read \
  --file-style= --hunk-header-style= --no-gitconfig --show-config *read
jq, gojq, jaq :: -[cneosrRaCMSjhsV0] -f=~filterfile --from-file=~filterfile -L=read --library-path=read --arg== \
  --argjson== --slurpfile==read --rawfile==read --indent= --args --jsonargs --compact-output --null-input \
  --exit-status --slurp --raw-output --raw-input --raw-output0 --join-output --ascii-output --color-output \
  --monochrome-output --sort-keys --tab --stream --stream-errors --seq --unbuffered --yaml-input --yaml-output \
  --build-configuration 1filter *read
gron :: -[ucmjsvk] --ungron --values --colorize --monochrome --stream --json --no-sort *address
xmllint :: -o=write --output=write --xpath= --pattern= --schema=read --dtdvalid=read --relaxng=read \
  --schematron=read --encode= --format --c14n --c14n11 --exc-c14n --noout --recover --nonet --noblanks \
  --noent!?unknown-target --html --htmlout --nowarning --huge --push --memory --timing --stream --nsclean --nocdata \
  --pedantic --oldxml10 --pretty= --maxmem= --quiet --nodict --nofixup-base-uris --debug --path=!?unknown-target \
  --load-trace --shell!execute,?code --xinclude!?unknown-target --noxincludenode!?unknown-target \
  --loaddtd!?unknown-target --dtdattr!?unknown-target --valid!?unknown-target --postvalid!?unknown-target \
  --catalogs!?unknown-target --nocatalogs --insert --dtdvalidfpi=!?unknown-target --testIO!?unknown-target *read
csvcut, csvlook, csvstat :: -[nxlHSvKtzy] -c= -C= -d= -q= -u= -p= -e= -K= --names --columns= --not-columns= \
  --delimiter= --tabs --quotechar= --encoding= --no-header-row --max-rows= --max-columns= --csv --count --freq \
  --type --nulls --unique --min --max --sum --mean --median --stdev --len --linenumbers --no-inference --snifflimit= \
  *read
csvgrep :: -[nHivlt] -c= -d= -m= -r= -f=read -q= -e= --columns= --match= --regex= --file=read --invert-match \
  --any-match --names --delimiter= --encoding= --no-header-row *read
less :: -[aAcCdeEfFgGiIJKLmMnNqQrRsSuUVwWX] -o=write -O=write --log-file=write --LOG-FILE=write -k=program \
  --lesskey-file=program --lesskey-src=program --lesskey-content=code -b= -h= -j= -p= -P= -t=read -T=read -x= -y= \
  -z= -D= --pattern= --prompt= --tag= --tag-file=read --chop-long-lines --ignore-case --IGNORE-CASE --LINE-NUMBERS \
  --line-numbers --quit-if-one-screen --no-init --RAW-CONTROL-CHARS --raw-control-chars --quit-at-eof --QUIT-AT-EOF \
  --squeeze-blank-lines --hilite-search --quiet --silent --no-lessopen --tabs= --window= --jump-target= --mouse \
  --wordwrap --follow-name --header= --use-color --color= *page
more, most :: -[dflcpesuvwtbz1] -n= --silent --logical --no-pause --print-over --clean-print --exit-on-eof --squeeze \
  --plain --lines= *page
bat, batcat :: -[pnAuSPfhV] -l= -r= -H= -m= --language= --line-range= --highlight-line= --map-syntax= --theme= \
  --theme-dark= --theme-light= --style= --color= --paging= --pager=run --tabs= --wrap= --plain --number --show-all \
  --file-name= --decorations= --italic-text= --terminal-width= --list-themes --list-languages --diff --diff-context= \
  --force-colorization --unbuffered --chop-long-lines --squeeze-blank --squeeze-limit= --strip-ansi= --binary= \
  --nonprintable-notation= --ignored-suffix= --no-pager --no-paging --no-config --no-custom-assets --config-file \
  --config-dir --cache-dir --acknowledgements --set-terminal-title 1cached *read
man :: -[dDfkKwWciIau7tZ] -P=run --pager=run -H?run --html?run -X?!execute,?script --gxditview?!execute,?script \
  -C=program --config-file=program -M=read --manpath=read -m= -S= -s= -L= -R= -l:read -e= -r= -E= -p= -T? --debug \
  --default --warnings? --whatis --apropos --global-apropos --local-file:read --where --path --location --where-cat \
  --location-cat --catman --recode= --locale= --systems= --sections= --extension= --ignore-case --match-case --regex \
  --wildcard --names-only --all --update --no-subpages --prompt= --ascii --encoding= --no-hyphenation --nh \
  --no-justification --preprocessor= --troff --troff-device? --ditroff gnu *manual
info :: -[aknOwv] -o=write --output=write --dribble=write --restore=program --init-file=program -f=read --file=read \
  -d=read --directory=read -k= --apropos= -n= --node= --index-search= --all --where --location --subnodes \
  --show-options --usage --vi-keys --raw-escapes --no-raw-escapes --strict-node-location gnu *manual
# Their operands are names of programs and builtins.
whatis, apropos, help :: -[dsmwWrelaMLC] -s= -m= -M= -L= -C=program --debug --verbose --exact --wildcard --and \
  --long --sections= --systems= --locale= gnu *skip
date :: -[uRjn] -d= -f=read -r=stamp -s=!system -I? -v= --date= --debug --file=read --reference=read --set=!system \
  --iso-8601? --resolution --rfc-3339= --rfc-email --utc --universal gnu *clock
hostname :: -[aAdfiIsyv] --alias --all-fqdns --domain --fqdn --long --ip-address --all-ip-addresses --short --yp \
  --nis -F!system --file!system -b!system --boot!system gnu *system
domainname, nisdomainname :: *system
# Their operands are names of users, variables and limits, or intervals.
pwd, whoami, id, groups, logname, tty, nproc, uptime, free, getconf, locale, uname, times, umask, ulimit, hostid, w, \
  vmstat, iostat, mpstat, lsb_release, sw_vers :: -[aLPsnrmpviogGuzZhbkwtldTScHMKNUJcfyxeADRXVCEFQIB] -c= --all \
  --context --group --groups --name --real --user --zero --kernel-name --nodename --kernel-release --kernel-version \
  --machine --processor --hardware-platform --operating-system --pretty --since --bytes --kilo --mega --giga --tera \
  --kibi --mebi --gibi --human --si --lohi --total --committed --seconds= --count= --wide --ignore= --all-locales \
  --charmaps --category-name --keyword-name --silent --quiet --no-header --no-current --short --from --old-style \
  --ip-addr --active --forks --slabs --one-header --stats --disk --disk-sum --unit= --timestamp --no-first --id \
  --description --release --codename --productName --productVersion --buildVersion *skip
# Their operands select devices, which they describe.
lscpu, lsmem, lspci, lsusb, lsblk :: -[aAbBcCdDefiJklLmMnNOpPqrSstTuvxyzZhK] -o= -e? -p? -C? -E= -I= -w= -x= -s= -S= \
  -d= --all --bytes --online --offline --caches? --json --extended? --parse? --sysroot= --hex --physical \
  --output-all --output= --noheadings --raw --split= --summary? --tree? --noempty --discard --dedup= --include= \
  --merge --pairs --scsi --nodeps --exclude= --fs --ascii --list --perms --paths --inverse --topology --width= \
  --sort= --shell --zoned *skip
who, users :: -[abdHlmpqrstTuw] --all --boot --dead --heading --ips --login --lookup --process --count --runlevel \
  --short --time --mesg --message --writable --users gnu *logins
# Its operands are names of users and terminals.
last, lastb, lastlog :: -[adFiRpwx] -f=read --file=read -n= -s= -t= -b= -u= --hostlast --dns --fulltimes --ip \
  --limit= --nohostname --since= --until= --present= --fullnames --system --time-format= --before= --user= gnu *skip
# Its operands are intervals and counts.
sar :: -[ABbCdFHhIqrRSuVvWwyzpt] -n= -P= -m= -i= -s? -e? -f=read -o=write -j= -1 --human --pretty --iface= --dev= \
  --fs= --int= --dec= --sadc *skip
# Its operands are numbers of jobs.
jobs :: -[lnprs] -x!execute,?dynamic-code *skip
# Its operands are positions in the list of directories.
dirs :: -[lpv] -c *skip
# They only draw on the terminal.
clear, reset :: -[xqcIQrsw] -T= -e= -i= -k= -m= *skip
# On macOS it starts a program for another processor; elsewhere it takes no operand.
arch :: -arm64 -arm64e -x86_64 -x86_64h -i386 -32 -64 -c -h -d= -e=code onedash posix *command
# Their operands are patterns for names of processes.
pgrep, pidof :: -[lavwcfinoxLAsqhz] -d= -g= -G= -O= -P= -s= -t= -u= -U= -F=read -r= -o= -S= --delimiter= --list-name \
  --list-full --inverse --lightweight --count --full --pgroup= --group= --ignore-case --newest --oldest --older= \
  --parent= --session= --terminal= --euid= --uid= --exact --pidfile=read --logpidfile --runstates= \
  --ignore-ancestors --cgroup= --ns= --nslist= gnu *skip
# Its operand is a process or a user.
pstree :: -[aAcgGhlnpsStTuUZwk] -C= -H= -N= -s= --arguments --ascii --compact-not --color= --show-pgids --vt100 \
  --highlight-all --highlight-pid= --long --numeric-sort --ns-sort= --show-pids --show-parents --ns-changes \
  --thread-names --hide-threads --uid-changes --unicode --security-context gnu *skip
# Its operands, if any, are numbers.
top, htop :: -[bcHiSs1ACMtxhe] -d= -n= -o= -p= -u= -U= -w? -E= -e= -l= -F= --batch-mode --delay= --iterations= \
  --pid= --sort-override= --sort-key= --threads-show --cmdline-toggle --no-color --tree --user= --filter= --readonly \
  *skip
lsof :: -[abClMNnOPqRtUVvwXxKEZQ] -i? -p= -u= -c= -d= -g? -r? -s? -T? -F? -S? -f? -o? -L? -A= \
  -D=write!?unknown-option -e=read -k=read -m=read *sockets
# Its operands are filters of sockets.
ss :: -[nralompTisbEZzH460tMSudwxOBeV] -N= -f= -A= -K!system -D=write -F=read!?unknown-option --numeric --resolve \
  --all --listening --options --extended --memory --processes --threads --info --tipcinfo --summary --tos --cgroup \
  --bpf --events --context --contexts --net= --ipv4 --ipv6 --packet --tcp --mptcp --sctp --udp --dccp --raw --unix \
  --tipc --vsock --xdp --family= --kill!system --no-header --oneline --inet-sockopt --query= --socket= --diag=write \
  --filter=read!?unknown-option gnu *skip
# Its operand is an interval.
netstat :: -[rigsMvWnNepoclaFCZtuwx46AfTbmLRSdqDj] -p= -I= -A= -f= --route --interfaces? --groups --statistics \
  --masquerade --verbose --wide --numeric --numeric-hosts --numeric-ports --numeric-users --symbolic --extend \
  --programs --timers --continuous --listening --all --fib --cache --context --tcp --udp --raw --unix --inet --inet6 \
  gnu *skip
# It asks the machine that the operand names.
finger :: lax +network +egress *host
# Its operands select mounted file systems, which it lists.
findmnt :: -[smkAabCcDefiJlnPRruUvyx] -p? -w= -d= -F=read -N= -O= -o= -S= -T= -M= -t= --fstab --mtab --kernel \
  --poll? --timeout= --all --ascii --bytes --nocanonicalize --canonicalize --df --direction= --evaluate \
  --tab-file=read --first-only --invert --json --list --task= --noheadings --options= --output= --output-all --pairs \
  --pseudo --shadowed --submounts --raw --real --source= --target= --tree --mountpoint= --types= --uniq --notruncate \
  --nofsroot --shell --verify --verbose --vfs-all gnu *skip
# Its operands are devices, whose labels it shows.
blkid :: -[dgklpiD] -c=write -o= -s= -t= -L= -U= -H= -S= -O= -u= -n= --no-encoding --list-filesystems --list-one \
  --cache-file=write --output= --match-tag= --match-token= --label= --uuid= --probe --info *skip
ps :: -[AaedNTxfFjlHmLMcwySZvrVy] -E!secret -o= -p= -u= -U= -C= -G= -g= -t= -O= -q= -s= -n= --sort= --format= --pid= \
  --user= --User= --ppid= --quick-pid= --group= --Group= --tty= --sid= --cols= --columns= --rows= --lines= --width= \
  --no-headers --no-heading --headers --forest --deselect --cumulative --context --info gnu *shown
# Its operands are keys of a public database.
getent {passwd group services protocols networks ethers rpc aliases initgroups netgroup} :: -[Ai] -s= *skip
# Its operands are names of users; a rule asks about what it shows.
getent {shadow gshadow} :: -[Ai] -s= +secret *skip
getent {hosts ahosts ahostsv4 ahostsv6} :: -[Ai] -s= +network *send
# Their operands are names of programs.
which, whereis, type, whence, where :: -[asvpPtfbBmMSulcwm] --all --skip-alias --skip-functions --read-alias \
  --read-functions --show-dot --show-tilde --tty-only *skip
nm :: -[aABCDegjlnopPrsSuUWvX] -C? -f= -t= --debug-syms --print-file-name --demangle? --no-demangle --recurse-limit \
  --no-recurse-limit --dynamic --format= --extern-only --ifunc-chars= --just-symbols --line-numbers --numeric-sort \
  --no-sort --portability --reverse-sort --print-size --print-armap --quiet --size-sort --special-syms --synthetic \
  --radix= --target= --undefined-only --defined-only --unicode= --no-weak --with-symbol-versions --plugin=program \
  gnu *object
objdump :: -[afphxdDSsgeGWLtTrRvilFwzCU] -P= -b= -m= -j= -M= -I=read --archive-headers --file-headers \
  --private-headers --private= --section-headers --headers --all-headers --disassemble? --disassemble-all --source \
  --source-comment? --full-contents --debugging --debugging-tags --stabs --dwarf? --process-links --ctf? --sframe? \
  --syms --dynamic-syms --reloc --dynamic-reloc --info --target= --architecture= --section= --disassembler-options= \
  --endian= --file-start-context --include=read --line-numbers --file-offsets --demangle? --recurse-limit \
  --no-recurse-limit --wide --unicode= --disassemble-zeroes --start-address= --stop-address= --no-addresses \
  --prefix-addresses --insn-width= --adjust-vma= --show-all-symbols --special-syms --inlines --prefix= \
  --prefix-strip= --dwarf-depth= --dwarf-start= --dwarf-check --ctf-parent= --visualize-jumps? --disassembler-color= \
  --no-show-raw-insn --show-raw-insn --plugin=program gnu *object
readelf :: -[ahlSgtesnrudVAcDLzWIPvCUwH] -x= -p= -R= -T= --all --file-header --program-headers --segments \
  --section-headers --sections --section-groups --section-details --headers --syms --symbols --dyn-syms --lto-syms \
  --sym-base= --demangle? --no-demangle --recurse-limit --no-recurse-limit --unicode? --notes --relocs --unwind \
  --dynamic --version-info --arch-specific --archive-index --use-dynamic --lint --enable-checks --hex-dump= \
  --string-dump= --relocated-dump= --decompress --debug-dump? --process-links --dwarf-depth= --dwarf-start= --ctf= \
  --ctf-parent= --ctf-symbols= --ctf-strings= --sframe? --histogram --wide --silent-truncation gnu *object
size, otool, dwarfdump :: -[ABGodxtfmhlLDrjpIMvVaXsSCGctTHRPNEnwy] -arch= --format= --radix= --common --totals \
  --target= --all --debug-info --uuid --arch= *object
# Its operands are addresses in the program that `-e` names.
addr2line :: -[aipsfCRr] -b= -e=object -j= --addresses --target= --exe=object --inlines --section= --pretty-print \
  --basenames --functions --demangle? --recurse-limit --no-recurse-limit gnu *skip
# Its operands are names, which it prints in another form.
c++filt :: -[nipRrt] -s= --strip-underscore --no-strip-underscore --no-params --no-verbose --types --format= \
  --recurse-limit --no-recurse-limit gnu *skip
pdfinfo :: -[vh] -f= -l= -enc= -opw= -upw= -box -meta -js -struct -struct-text -isodates -rawdates -dests -custom \
  -url -listenc onedash *read
lipo :: -info -archs -detailed_info -verify_arch= -output=write -create -thin= -extract= -remove= onedash *read
pdftotext :: -[vhq] -f= -l= -r= -x= -y= -W= -H= -enc= -eol= -opw= -upw= -fixed= -layout -raw -nodiag -htmlmeta -tsv \
  -bbox -bbox-layout -cropbox -nopgbrk -colspacing= -listenc onedash 1read 2write
zipinfo :: -[12smlvhtTzZCM] -x= *read
lsar :: -[lLvjdehp] -long -verylong -test -json -json-ascii -password= -encoding= onedash *read
rpm2cpio :: *read
mediainfo :: -[f] --Full --Output= --Version *read
tokei :: -[fFhV] -e= -i=read -o= -s= -t= -c= -n= -C --files --exclude= --input=read --output= --sort= --types= \
  --columns= --hidden --languages --no-ignore --no-ignore-vcs --no-ignore-parent --no-ignore-dot --compact --verbose \
  --num-format= *read .read
sloccount :: --details --duplicates --crossdups --follow --multiproject --wide --autogen --datadir=write *read .read
cloc :: --out=write --report-file=write --extract-with=run --config=program --read-lang-def=read \
  --force-lang-def=read --list-file=read!?unknown-target --exclude-list-file=read --by-file --by-file-by-lang \
  --exclude-dir= --exclude-ext= --exclude-lang= --include-lang= --include-ext= --match-f= --match-d= --not-match-f= \
  --not-match-d= --fullpath --json --yaml --csv --md --xml --hide-rate --quiet --vcs= --git --diff --skip-uniqueness \
  --follow-links --force-lang= --processes= --progress-rate= --timeout= --sum-reports --csv-delimiter= --autoconf \
  --3 --unicode --sum-one --max-file-size= --docstring-as-code *read .read
scc :: -[abcdlmuvwyz] -o=write --output=write -f= -i= -s= -x= -M= --format= --by-file --no-cocomo --no-complexity \
  --no-size --wide --sort= --exclude-dir= --include-ext= --exclude-ext= --not-match= --no-ignore --no-gitignore --ci \
  --languages --no-duplicates --cocomo-project-type= --size-unit= --format-multi=write --sql-project= *read .read
# They only concern jobs, loops and aliases of this shell; their operands are numbers and names.
wait, shift, break, continue, fg, bg, disown, caller, suspend, unalias :: -[nfarhl] -p= *skip
inotifywait :: -[mdrqscPhI] -o=write --outfile=write --fromfile=read --exclude= --excludei= --include= --includei= \
  -e= -t= --event= --timeout= --format= --timefmt= --monitor --recursive --quiet --csv --syslog --daemon!persist \
  --no-dereference --no-newline --cleanup gnu *read
ldd :: -[druv] --data-relocs --function-relocs --unused --verbose gnu *program
# It takes no operand: it shows the messages of the kernel.
dmesg :: -[HJkPprSuwWxdeTta] -F=read -f= -L? -l= -s= -K=read --file=read --kmsg-file=read --facility= --human --json \
  --kernel --color? --level= --nopager --force-prefix --raw --noescape --syslog --buffer-size= --userspace --follow \
  --follow-new --decode --show-delta --reltime --ctime --notime --time-format= --since= --until= -C!system -c!system \
  --clear!system --read-clear!system -D!system -E!system --console-off!system --console-on!system -n=!system \
  --console-level=!system gnu *skip
# Its operands are matches of fields, or programs and devices whose messages it shows.
journalctl :: -[mkxarfqeNl] -D=read -u= -n? -p= -t= -S= -U= -o= -M= -c= -b? -g= -F= -T= --system --user --machine= \
  --merge --directory=read --file=read --root=read --image=read --namespace= --since= --until= --cursor= \
  --after-cursor= --cursor-file=write --boot? --unit= --user-unit= --identifier= --priority= --facility= --grep= \
  --case-sensitive? --dmesg --output= --output-fields= --lines? --reverse --show-cursor --utc --catalog \
  --no-hostname --no-full --all --follow --no-tail --quiet --no-pager --pager-end --fields --field= --list-boots \
  --disk-usage --header --list-catalog --dump-catalog --verify --vacuum-size=!system --vacuum-time=!system \
  --vacuum-files=!system --rotate!system --flush!system --sync!system --relinquish-var!system \
  --smart-relinquish-var!system --update-catalog!system --setup-keys!system gnu *skip
ifconfig, route :: -[avsnleC64] 1skip *system
# Its operands are names of hosts in the table of addresses.
arp :: -[aenvAl] -i= -H= -f!system:read -d!system -s!system -S!system --file!system:read --delete!system \
  --set!system *skip
# They describe devices, screens, fonts and terminals; their operands select them.
nvidia-smi, sensors, lshw, hwinfo, acpi, xdpyinfo, fc-list, infocmp :: -[qlLajusfABVtbciheEvx1CIrTdw] -i= -c=read \
  -C= -class= -short -json -html -xml -businfo -display= -ext= -f=write --query-gpu= --query-compute-apps= --format= \
  --list-gpus --short --json --filename=write --list-ids *skip
# They say whether a path is, or was, something: nothing of its contents.
mountpoint, pathchk :: -[dqxpP] --fs-devno --quiet --devno --nofollow --portability gnu *read

touch :: -[acfhm] -d= -t= -r=read -A= --no-create --no-dereference --date= --reference=read --time= gnu *write
mkdir, mkfifo, mknod :: -[pv] -m= -Z? --parents --verbose --mode= --context? gnu *write
rmdir, unlink, rm, srm, trash, trash-put, rimraf, del-cli :: -[fiIrRdvpPWxs] -g --force --one-file-system \
  --no-preserve-root --recursive --dir --verbose --parents --ignore-fail-on-non-empty --interactive? \
  --preserve-root? --glob --simple gnu *delete
shred, wipe :: -[fuvxzrqcikD] -n= -s= --force --remove? --verbose --exact --zero --iterations= --size= \
  --random-source=read gnu *delete
tee, sponge :: -[aip] --append --ignore-interrupts --output-error? gnu *write
truncate :: -[co] -s= -r=read --no-create --io-blocks --size= --reference=read gnu *write
fallocate :: -[cdinpzxv] -l= -o= --length= --offset= --collapse-range --dig-holes --insert-range --keep-size \
  --punch-hole --zero-range --posix --verbose gnu *write
split :: -[dexu] -l= -b= -n= -C= -a= -t= --lines= --bytes= --number= --line-bytes= --suffix-length= \
  --additional-suffix= --numeric-suffixes? --hex-suffixes? --elide-empty-files --separator= --unbuffered --verbose \
  --filter=run gnu 1read 2write @write
# After the file come patterns and line numbers.
csplit :: -[kszq] -f=write -b= -n= --keep-files --suppress-matched --quiet --silent --elide-empty-files \
  --prefix=write --suffix-format= --digits= gnu 1read *skip @write
mktemp :: -[duqt] -p=template --directory --dry-run --quiet --suffix= --tmpdir?template gnu *template
gzip, bzip2, xz, zstd, lz4, pigz, pbzip2, compress, lzma :: -[dfhkLnNqrvVzseHmCBixFIjKOPR] -S= -T? -b? -p? -M= \
  -D=read -o=write -c:read -l:read -t:read --stdout:read --to-stdout:read --list:read --test:read --decompress \
  --uncompress --compress --force --keep --license --no-name --name --quiet --recursive --rsyncable --suffix= \
  --synchronous --verbose --fast? --best --small --extreme --threads= --rm --ultra --long? --adapt? --no-progress \
  --no-check --filelist=!?unknown-target --output-dir-flat=write --output-dir-mirror=write --trace=write \
  --patch-from=read --train!write --files?!?unknown-target --files0?!?unknown-target --format= --processes= --check= \
  --single-thread *edit
gunzip, bunzip2, unxz, unzstd, unlz4, unlzma, uncompress :: -[fkNnqrvsmd] -S= -T? -o=write -c:read -l:read -t:read \
  --stdout:read --to-stdout:read --list:read --test:read --force --keep --name --no-name --quiet --recursive \
  --suffix= --verbose --rm --threads= --format= --output-dir-flat=write --output-dir-mirror=write *edit
zip :: -[rjqvueDyoXlLkFFgAJSzwicd9mp0] -b=template -n= -t= -tt= -P= -x= -i= -O=write -s= -sp= -Z= -T!execute,?code \
  -TT=run --test!execute,?code --unzip-command=run --temp-path=template -@!?unknown-target -m!delete --move!delete \
  --recurse-paths --junk-paths --quiet --exclude= --symlinks --encrypt --password= --out=write --log-file=write \
  --logfile-path=write 1write *read
# Their options are attached to switches; the line is unclear in any case.
7z, 7za, 7zr, rar, unrar :: lax -o?write -p? +?unknown-target +write *read
ar :: -[crstuvqxdmpabDfiNoPSTUVM] --target= --plugin=program --output=write --thin --record-libdeps= 1archive *edit
# Names of files come in on the standard input; `-t` lists an archive.
cpio :: -[tvVBcaLmuddk0nSs] -F=edit -I=read -O=write -D= -C= -H= -R= -E=read!?unknown-target -M= --list --quiet \
  --verbose --to-stdout --format= --file=edit --directory= --rsh-command=program --pattern-file=read!?unknown-target \
  --no-absolute-filenames --absolute-filenames!?unknown-target -o!read,?unknown-target --create!read,?unknown-target \
  -i!write,?unknown-target --extract!write,?unknown-target -p!write,?unknown-target \
  --pass-through!write,?unknown-target *skip
setfacl, chattr, setfattr, xattr, chflags :: -[RbkdnLPhVfvplcrsxw] -m= -x= -n= -v= -p= -M=read -X=read -w== \
  --modify= --remove= --recursive --remove-all --remove-default --default --restore=edit --set= --set-file=read \
  --test --name= --value= *edit
# Editors run commands and code of their own; the line is unclear in any case.
ed, ex, vi, vim, nvim, view, nano, emacs, emacsclient, pico, joe, micro, code, subl :: lax +?code +execute *edit
# Their first operand is code; the line is unclear in any case.
rename, prename, perl-rename, mmv, vidir :: lax +execute +?code *skip
# They change each file that they are given. A rule asks about every one of these changes.
mogrify, optipng, jpegoptim, svgo, fdupes, dos2unix, unix2dos, indent :: lax +write *edit
# Formats of these files can start programs; the line is unclear in any case.
convert, magick, cwebp, pngquant, pandoc, wkhtmltopdf, inkscape, ffmpeg, sox :: lax +execute +?unknown-program *read
nohup, eatmydata, catchsegv, linux32, linux64 :: posix *command
stdbuf :: -i= -o= -e= --input= --output= --error= posix *command
setsid :: -[cfw] --ctty --fork --wait posix *command
unbuffer :: -[p] posix *command
xvfb-run :: -[al] --auto-servernum --listen-tcp -e=write -f=read -n= -p= -s= -w= --error-file=write --auth-file=read \
  --server-num= --xauth-protocol= --server-args= --wait= posix *command
nice :: -n= --adjustment= posix *command
ionice :: -[t] --ignore -c= -n= -p=!process -P=!process -u=!process --class= --classdata= posix *command
timeout, gtimeout :: -[vfp] --foreground --preserve-status --verbose -s= -k= --signal= --kill-after= posix 1skip \
  *command
chrt :: -[abfiordRv] --batch --fifo --idle --other --rr --deadline -T= -P= -D= -p!process posix 1skip *command
taskset :: -[ac] --all-tasks --cpu-list -p!process --pid!process posix 1skip *command
time, gtime :: -[pavqlh] -f= -o=write --format= --output=write --append --verbose --portability posix *command
caffeinate :: -[dimsu] -t= -w= posix *command
strace :: -[fFcCdhiknNqrtTvVwxyzZAD] --follow-forks --summary -o=write -e= -p=!process -s= -u=!privilege -U= -E=code \
  -P= -a= -I= -O= -S= -X= -b= --output=write --trace= --string-limit= posix *command
flock :: -[sxeunoFv] --shared --exclusive --unlock --nonblock --close --verbose -w= -E= -c=run --timeout= \
  --conflict-exit-code= --command=run posix 1write *command
faketime :: -[fm] --exclude-monotonic -p= --date-prog=program posix 1skip *command
entr :: -[acdnprxz] -s!execute,?dynamic-code posix *command
chronic, ifne :: -[ven] posix *command
"""
