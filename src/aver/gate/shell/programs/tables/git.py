"""The subcommands of git. A handler judges `-c`, `--config-env`, `--exec-path`, `--git-dir`, `-C` and `git config`."""

from __future__ import annotations

_DIFF = r"""-[puwbBDRazWsc] -U= -M? -C? -l= -S= -G= -O=read -X? -I= --output=write --ext-diff!execute,?script \
  --textconv!execute,?script --no-index:read --patch --no-patch --unified= --function-context --raw --patch-with-raw \
  --patch-with-stat --numstat --shortstat --dirstat? --cumulative --dirstat-by-file? --check --summary --name-only \
  --name-status --stat? --stat-width= --stat-name-width= --stat-graph-width= --stat-count= --compact-summary \
  --binary --full-index --color? --ws-error-highlight= --abbrev? --src-prefix= --dst-prefix= --line-prefix= \
  --no-prefix --default-prefix --inter-hunk-context= --output-indicator-new= --output-indicator-old= \
  --output-indicator-context= --break-rewrites? --find-renames? --irreversible-delete --find-copies? \
  --find-copies-harder --no-renames --renames --rename-empty --follow --minimal --ignore-all-space \
  --ignore-space-change --ignore-space-at-eol --ignore-cr-at-eol --ignore-blank-lines --ignore-matching-lines= \
  --indent-heuristic --patience --histogram --diff-algorithm= --anchored= --word-diff? --word-diff-regex= \
  --color-words? --color-moved? --color-moved-ws= --relative? --text --exit-code --quiet --ignore-submodules? \
  --submodule? --ita-invisible-in-index --ita-visible-in-index --pickaxe-all --pickaxe-regex --rotate-to= --skip-to= \
  --find-object= --diff-filter= --cached --staged --merge-base --base --ours --theirs --combined-all-paths --cc \
  --diff-merges= --remerge-diff -r -t -m -v --root --always --stdin"""
"""Options of all programs that show changes."""

_REVISIONS = r"""-[gi1EFPqh] -n= --max-count= --skip= --since= --until= --after= --before= --since-as-filter= \
  --max-age= --min-age= \
  --author= --committer= --grep= --grep-reflog= --all-match --invert-grep --regexp-ignore-case --basic-regexp \
  --extended-regexp --fixed-strings --perl-regexp --remove-empty --merges --no-merges --min-parents= --max-parents= \
  --no-min-parents --no-max-parents --first-parent --exclude-first-parent-only --not --all --branches? --tags? \
  --remotes? --glob= --exclude= --exclude-hidden= --reflog --alternate-refs --single-worktree --ignore-missing \
  --bisect --cherry-mark --cherry-pick --left-only --right-only --cherry --walk-reflogs --merge --boundary \
  --simplify-by-decoration --show-pulls --full-history --dense --sparse --simplify-merges --ancestry-path? \
  --date-order --author-date-order --topo-order --reverse --no-walk? --do-walk --pretty? --format= --oneline \
  --abbrev-commit --no-abbrev-commit --encoding= --expand-tabs? --notes? --no-notes --show-notes? --standard-notes \
  --show-signature --relative-date --date= --parents --children --left-right --graph --no-graph --show-linear-break? \
  --decorate? --decorate-refs= --decorate-refs-exclude= --clear-decorations --source --use-mailmap --mailmap \
  --log-size -L=committed --count --disk-usage? --objects --quiet --use-bitmap-index"""
"""Options of all programs that list revisions."""

TABLE = r"""
git {log show diff whatchanged diff-tree diff-index diff-files range-diff show-branch cherry}, git reflog show, git \
  stash list :: <diff> <revisions> --creation-factor= --more= --list --sha1-name --topics --current --independent \
  --no-name gnu no *committed @read
# Files that git did not know when they were set aside may hold secrets.
git stash show :: <diff> <revisions> -u!secret --include-untracked!secret --only-untracked!secret gnu no *committed \
  @read
git status :: -[vsbzLu] -u? -M? --verbose --short --branch --show-stash --ahead-behind --porcelain? --long --null \
  --untracked-files? --ignored? --ignore-submodules? --column? --renames --find-renames? --no-renames gnu no \
  *committed @read
git {ls-files ls-tree} :: -[cdmoiskutvfzrl] -x= -X=read --cached --deleted --modified --others --ignored --stage \
  --killed --directory --eol --empty-directory --unmerged --resolve-undo --exclude= --exclude-from=read \
  --exclude-per-directory= --exclude-standard --full-name --recurse-submodules --error-unmatch --with-tree= \
  --abbrev? --debug --deduplicate --sparse --format= --long --name-only --name-status --object-only --full-tree gnu \
  no *committed @read
# Its operands are revisions and names of paths, of which it prints where they are.
git rev-parse :: -[q] -n= --short? --abbrev-ref? --verify --symbolic --symbolic-full-name --show-toplevel --git-dir \
  --git-common-dir --absolute-git-dir --show-prefix --show-cdup --show-superproject-working-tree \
  --is-inside-work-tree --is-inside-git-dir --is-bare-repository --is-shallow-repository --git-path= --all \
  --branches? --tags? --remotes? --glob= --exclude= --disambiguate= --not --sq --sq-quote --revs-only --no-revs \
  --flags --no-flags --default= --quiet --local-env-vars --path-format= --since= --until= --show-object-format? \
  --show-ref-format --resolve-git-dir=read --parseopt --keep-dashdash --stop-at-non-option --stuck-long --prefix= \
  --end-of-options --max-count= --abbrev? *skip @read
# Their operands are revisions and patterns of refs: they print names and numbers, no contents.
git {describe for-each-ref show-ref name-rev merge-base count-objects check-ref-format var version verify-commit \
  verify-tag fsck column}, git worktree list, git remote get-url, git bisect {log view}, git submodule {status \
  summary}, git notes {list show}, git sparse-checkout list, git bundle {verify list-heads}, git lfs {ls-files \
  status env}, git maintenance list, git rerere status, git ls-remote --get-url, git reflog {list exists} :: \
  -[aqdvzHslrl] -t= -n? --contains --debug --all --tags --long --first-parent --abbrev? --exact-match --candidates= \
  --match= --exclude= --always --dirty? --broken? --shell --perl --python --tcl --count= --format= --color? --sort= \
  --points-at= --merged? --no-merged? --contains? --no-contains? --ignore-case --stdin --heads --branches --verify \
  --head --dereference --hash? --quiet --exists --name-only --refs= --undefined --annotate-stdin --octopus \
  --independent --is-ancestor --fork-point --verbose --human-readable --porcelain --raw --push --short --recursive \
  --cached --files --summary-limit= --for-status --size --json --name-only --full --strict --no-dangling \
  --connectivity-only --unreachable --dangling --root --no-reflogs --mode= --width= --padding= --indent= --nl= \
  --ref= --branch --normalize --allow-onelevel --refspec-pattern --omit-empty --include-root-refs no *skip @read
git {check-ignore check-attr get-tar-commit-info diff-pairs merge-tree patch-id stripspace cat-file help submodule} \
  :: -[avqnztesepcs] --stdin --verbose --quiet --non-matching --no-index --all --cached --source= \
  --textconv!execute,?script --filters!execute,?script --batch?!?unknown-target \
  --batch-check? --batch-command?!?unknown-target --batch-all-objects \
  --buffer --follow-symlinks --unordered --use-mailmap --mailmap --path= --allow-unknown-type --name-only \
  --write-tree!write --messages --merge-base= --allow-unrelated-histories --strip-comments --comment-lines --stable \
  --unstable --verbatim --guides --man --web --config no *committed @read
git interpret-trailers :: --in-place:edit --trim-empty --where= --if-exists= --if-missing= --trailer= \
  --only-trailers --only-input --unfold --parse --no-divider no *read
git shortlog :: -[nsceh] -w? --numbered --summary --email --group= <revisions> gnu no *committed @read
git {blame annotate} :: -[cblrtfnspewkh] -L= -S=read -M? -C? --root --show-stats --date= --abbrev= --score-debug \
  --show-name --show-number --show-email --porcelain --line-porcelain --incremental --progress --encoding= --minimal \
  --color-lines --color-by-age --first-parent --reverse --contents=read --ignore-revs-file=read --ignore-rev= \
  --since= gnu no *committed @read
git rev-list :: <revisions> -[c] --stdin --header --timestamp --bisect-vars --bisect-all --objects-edge --unpacked \
  --in-commit-order --filter= --missing= --no-object-names --object-names --commit-header --disk-usage? gnu no \
  *committed @read
git grep :: -[aiIwvhHEGFPnlLOzocprRWqs] -e= -f=read -A= -B= -C= -m= -O?run --open-files-in-pager?run --no-index:read \
  --cached --untracked --exclude-standard --recurse-submodules --text --ignore-case --word-regexp --invert-match \
  --full-name --extended-regexp --basic-regexp --fixed-strings --perl-regexp --line-number --column \
  --files-with-matches --name-only --files-without-match --null --only-matching --count --color? --break --heading \
  --show-function --function-context --context= --after-context= --before-context= --max-count= --max-depth= \
  --recursive --threads= --and --or --not --all-match --quiet --textconv!execute,?script gnu no *committed @read
git ls-remote :: -[htqb] --upload-pack=run --exec=run -o=!egress --server-option=!egress --sort= --heads --branches \
  --tags --refs --quiet --exit-code --symref +network *remote
git pull :: -[vqnetpaPk46r] --upload-pack=run -o=!egress --server-option=!egress --depth= --deepen= -s=run -X= -r? \
  --rebase? -j= --jobs= -S? --gpg-sign? --filter= --no-verify!agent-config --strategy=run --strategy-option= \
  --verbose --quiet --progress --recurse-submodules? --stat --summary --log? --signoff --squash --commit --edit \
  --cleanup= --ff --ff-only --no-ff --verify-signatures --autostash --allow-unrelated-histories --all --append -f \
  --force!git-history --tags --prune --dry-run --keep --shallow-since= --shallow-exclude= --unshallow \
  --update-shallow --refmap=!git-history --ipv4 --ipv6 --negotiation-tip= --show-forced-updates --set-upstream no \
  +network @write 1remote *refspec
git clone :: -[lsnqv46] --upload-pack=run -u=run -o= -b= --branch= --depth= --origin= --reference=read \
  --reference-if-able=read --template=read!execute,?script -c=setting --config=setting --separate-git-dir=write \
  --filter= -j= --jobs= --shallow-since= --shallow-exclude= --server-option=!egress --bundle-uri=remote \
  --recurse-submodules? --recursive? --local --no-hardlinks --shared --dissociate --quiet --verbose --progress \
  --no-checkout --bare --sparse --also-filter-submodules --mirror --single-branch --no-tags --shallow-submodules \
  --remote-submodules --ref-format= --revision= no +network 1remote 2write @write
git push :: -[vqnu46] --receive-pack=run --exec=run -o= --push-option= --repo=remote -f!git-history \
  --force!git-history --force-with-lease?!git-history --force-if-includes!git-history -d!git-history \
  --delete!git-history --mirror!git-history --prune!git-history --no-verify!agent-config --signed? \
  --recurse-submodules= --all --branches --tags --follow-tags --atomic --dry-run --porcelain --verbose --quiet \
  --set-upstream --thin --progress --ipv4 --ipv6 no +network +egress 1remote *refspec
git {add stage} :: -[nvipefuNA] --dry-run --verbose --interactive --patch --edit --force --update --renormalize \
  --intent-to-add --all --ignore-removal --refresh --ignore-errors --ignore-missing --sparse --warn-embedded-repo \
  --pathspec-from-file=read --pathspec-file-nul --chmod= gnu no *staged @write
git hash-object :: -t= -w!write --path= --stdin --stdin-paths!?unknown-target --no-filters --literally *read
# Its operand is the name of a remote.
git remote show :: -[n] +network *skip
git commit :: -[qveaioszp] -m= -F=read -C= -c= -t=read -S? -u? --message= --file=read --author= --date= --cleanup= \
  --template=read --fixup= --squash= --reuse-message= --reedit-message= --trailer= --gpg-sign? --quiet --verbose \
  --reset-author --signoff --edit --status --all --include --interactive --patch --only --dry-run --short --branch \
  --ahead-behind --porcelain --long --null --no-post-rewrite --allow-empty --allow-empty-message \
  --pathspec-from-file=read --pathspec-file-nul --amend!git-history -n!agent-config --no-verify!agent-config \
  --untracked-files? gnu no *staged @write
# Their operands are objects and entries of the index. A rule asks about each of these changes.
git {commit-tree mktag mktree write-tree read-tree update-index checkout-index unpack-file pack-objects \
  unpack-objects index-pack merge-file merge-index merge-one-file} :: lax +write *skip @write
git {checkout switch} :: -[qlmdgh] -b= -B=!git-history -c= -C=!git-history --create= --force-create=!git-history \
  --orphan= --conflict= -f!delete --force!delete --discard-changes!delete \
  --pathspec-from-file=!delete,?unknown-target --pathspec-file-nul -p!delete --patch!delete --ours!delete \
  --theirs!delete -2!delete -3!delete -t? --track? --guess --overlay --quiet --recurse-submodules!delete --progress \
  --merge --detach --overwrite-ignore --ignore-other-worktrees --ignore-skip-worktree-bits gnu no *discards @write
git restore :: -[qm] -s= --source= --conflict= --pathspec-from-file=!delete,?unknown-target --pathspec-file-nul -S \
  --staged -W --worktree -p!delete --patch!delete --ignore-unmerged --overlay --quiet --progress --merge --ours \
  --theirs --recurse-submodules!delete --ignore-skip-worktree-bits gnu no *restores
git rm :: -[nqfr] --dry-run --quiet --force --ignore-unmatch --sparse --pathspec-from-file=!delete,?unknown-target \
  --pathspec-file-nul --cached:unstaged gnu no *delete
git mv :: -[vnfk] --verbose --dry-run --force --sparse gnu no *edit $renamed
git clean :: -[qfidxX] -e= --exclude= --quiet --force --interactive -n:skip --dry-run:skip gnu no *delete .delete
# With `-a` it takes what git ignores, too: settings of this machine, secrets among them.
git stash, git stash push :: -[kSpqu] -a!write --all!write -m= --message= --keep-index --staged --patch --quiet \
  --include-untracked --pathspec-from-file=read --pathspec-file-nul gnu no *staged @git-state
# What follows is a message, or the name of an entry: nothing is lost by it.
git stash {save pop apply branch create store} :: -[kSpqu] -a!write --all!write -m= --message= --keep-index --staged \
  --patch --quiet --include-untracked --index gnu no *skip @git-state
# They drop what was set aside; a rule asks.
git stash {drop clear} :: -[q] --quiet +git-history *skip
# Their operands are revisions. A rule asks about what they write.
git merge :: -[nevq] -m= -F=read -s=run -X= -S? --strategy=run --strategy-option= --into-name= --gpg-sign? \
  --no-verify!agent-config --stat --summary --log? --squash --commit --edit --cleanup= --ff --ff-only --no-ff \
  --rerere-autoupdate --verify-signatures --message= --file=read --verbose --quiet --abort --quit --continue \
  --allow-unrelated-histories --progress --autostash --overwrite-ignore --signoff gnu no *skip @write
# Their operands are revisions. A rule asks about what they write.
git {cherry-pick revert} :: -[nexs] -m= -s= -X= -S? --strategy=run --strategy-option= --mainline= --gpg-sign? --quit \
  --continue --abort --skip --cleanup= --no-commit --edit --signoff --rerere-autoupdate --ff --allow-empty \
  --allow-empty-message --keep-redundant-commits --empty= --reference gnu no *skip @write
# Its operands are revisions; a rule asks about every rebase.
git rebase :: lax -x=run --exec=run -s= -X= -S? -C= --onto= --strategy= --whitespace= --no-verify!agent-config \
  +git-history *skip @write
git reset :: -[qNz] --hard!git-history,delete --merge!git-history,delete --keep!git-history,delete \
  --soft!git-history --mixed --quiet --no-refresh --refresh --intent-to-add --recurse-submodules!delete -p --patch \
  --pathspec-from-file=read --pathspec-file-nul gnu no *resets @git-state
git branch :: -[qitvalr] -d!git-history -D!git-history --delete!git-history -m!git-history -M!git-history \
  --move!git-history -f!git-history --force!git-history -c!git-state -C!git-history --copy!git-state -u=!write \
  --set-upstream-to=!write --unset-upstream!write --edit-description!write --contains?:skip --merged?:skip \
  --no-merged?:skip --no-contains?:skip --with?:skip --without?:skip --points-at=:skip --format= --sort= -l:skip \
  --list:skip -a:skip -r:skip -v:skip -vv:skip --all:skip --remotes:skip --verbose:skip --show-current:skip \
  --abbrev? --color? --column? --ignore-case --omit-empty --quiet --track? --create-reflog --recurse-submodules gnu \
  no *branches
git tag :: -[ie] -d!git-history --delete!git-history -f!git-history --force!git-history -a!write -s!write -u=!write \
  -m=!write -F=read!write -n?:skip -l:skip --list:skip --contains?:skip --no-contains?:skip --with?:skip \
  --without?:skip --sort= --format= --points-at?:skip --merged?:skip --no-merged?:skip -v:skip --verify:skip \
  --annotate --message=!write --file=read!write --edit --sign --cleanup= --local-user= --create-reflog --column? \
  --color? --ignore-case --trailer= --omit-empty no *tags
# Without more words it lists the remotes.
git remote, git remote {-v --verbose} :: -[v] --verbose *skip
# Their operands are names and addresses of remotes; a rule asks.
git remote {add set-url rename remove rm set-head set-branches prune} :: lax -t= -m= +write +git-history *skip
# Its operands are names of remotes.
git remote update :: -[p] --prune --verbose +network *skip
# After the directory comes a branch.
git worktree {add move} :: -[fdq] -b= -B=!git-history --reason= --orphan --force --detach --checkout --no-checkout \
  --lock --quiet --track --guess-remote --relative-paths no 1write *skip
git worktree {remove prune} :: -[fnv] --force --dry-run --verbose --expire= *delete
# Their operands are names of worktrees, revisions or parts of the tree; a rule asks about what they write.
git worktree {lock unlock repair}, git bisect {start good bad reset skip new old terms replay visualize next} :: lax \
  +write *skip
# They fetch and check out what `.gitmodules` names; a rule asks.
git submodule {update add sync init deinit absorbgitdirs set-url set-branch} :: lax -b= --branch= --depth= \
  --reference=read -j= --name= +network +write +execute *skip
git submodule foreach :: -[q] --recursive --quiet posix +execute *run
git bisect run :: posix *command
# The first operand is the ref that is shown; a second one changes where it leads.
git symbolic-ref :: -[q] --quiet --short --recurse -d!git-history --delete!git-history -m= 1skip 2history *skip \
  @read
# Unclear in any case: each of them can rewrite everything that git has recorded.
git {filter-branch filter-repo replace update-ref prune prune-packed fast-import fast-export refs graft gc repack \
  pack-refs history}, git reflog {expire delete} :: lax +git-history +?unknown-option *skip
# Its operands are refs.
git reflog :: <revisions> -[p] --stat? --patch no *skip @read
git apply :: -[3vRqNz] --directory= -p= -C= --exclude= --include= --check:read --stat:read --numstat:read \
  --summary:read --build-fake-ancestor=write --unsafe-paths!write,?unknown-target --index --cached --3way --reverse \
  --reject --verbose --quiet --recount --whitespace= --ignore-whitespace --ignore-space-change --inaccurate-eof \
  --unidiff-zero --allow-empty --allow-overlap --intent-to-add --apply --binary --ours --theirs --union no *read \
  @unpack
# It applies what its mailboxes hold; a rule asks.
git am :: lax --directory= -p= -S? --exec= --patch-format= --no-verify!agent-config -n *read @unpack +git-history
# Its operands are revisions. A rule asks about the files that it writes.
git format-patch :: lax -o=write --output-directory=write --output=write --stdout --signature-file=read \
  --cover-from-description= --in-reply-to= +write *skip @write
git archive :: -[lv0123456789] -o=write --output=write --format= --prefix= --remote=remote --exec=run \
  --add-file=read --add-virtual-file= --mtime= --list --verbose --worktree-attributes *committed @read
# After the bundle come revisions.
git bundle create :: -[q] --progress --quiet --all-progress --version= 1write *skip
# A rule asks about what it writes or runs, so its options need no list.
git bundle unbundle, git bundle :: lax +write *read
# Their operands are revisions; a rule asks about the notes that they write.
git notes, git notes {add append edit merge remove prune copy} :: lax -m= -F=read -C= -c= --ref= +write *skip
git init :: -[q] --template=read!execute,?script --separate-git-dir=write -b= --initial-branch= --shared? \
  --object-format= --ref-format= --bare --quiet *write @write
# Their operands are parts of the tree; a rule asks about what they write.
git {sparse-checkout rerere}, git sparse-checkout {set add init disable} :: lax +write *skip
# They install hooks and fetch large files; a rule asks.
git lfs, git lfs {pull fetch install track push migrate} :: lax +network +write +persist *skip
# A rule asks in any case, so its options need no list.
git maintenance, git maintenance {start register run} :: lax +persist +write *skip
# A rule asks in any case, so its options need no list.
git {credential credential-store credential-cache}, git credential fill :: lax +secret *skip
# Unclear in any case: they start a program that the settings name.
git {difftool mergetool} :: lax -t= --tool= -x=run --extcmd=run +execute +?code *skip
# Unclear in any case, so its options need no list.
git {hook send-pack receive-pack upload-pack upload-archive http-push http-fetch daemon instaweb gui citool svn p4 \
  cvsimport cvsserver shell quiltimport imap-send request-pull fsmonitor--daemon web--browse remote-ext remote-fd \
  fetch-pack mergetool--lib} :: lax +execute +network +?unknown-program
# A rule asks in any case, so its options need no list.
git send-email :: lax +network +egress *read
"""
TABLE = TABLE.replace("<diff>", _DIFF).replace("<revisions>", _REVISIONS)
