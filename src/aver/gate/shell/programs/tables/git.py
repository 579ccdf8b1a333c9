"""The subcommands of git. A handler judges `-c`, `--config-env`, `--exec-path` and `git config`."""

from __future__ import annotations

TABLE = r"""
git {log show diff whatchanged diff-tree diff-index diff-files range-diff show-branch cherry}, git reflog show, git \
  stash show :: --output=write --ext-diff!execute,?script --textconv!execute,?script -O=read --format= --pretty= -n= \
  --max-count= -L=committed -S= -G= -U= -M? -C? -B? --unified= --since= --until= --after= --before= --author= \
  --committer= --grep= --date= --diff-filter= --word-diff? --word-diff-regex= --stat? --color? --src-prefix= \
  --dst-prefix= --max-parents= --min-parents= --skip= --decorate? --ws-error-highlight= --inter-hunk-context= \
  --relative? --submodule? --output-indicator-new= --output-indicator-old= --output-indicator-context= \
  --no-index:read *committed @read
git {status ls-files ls-tree rev-parse describe for-each-ref show-ref name-rev merge-base count-objects check-ignore \
  check-attr check-ref-format var version help fsck verify-commit verify-tag get-tar-commit-info diff-pairs \
  merge-tree patch-id column stripspace interpret-trailers cat-file submodule}, git bisect {log view}, git stash \
  list, git worktree list, git submodule {status summary}, git notes {list show}, git remote get-url, git \
  sparse-checkout list, git bundle {verify list-heads}, git lfs {ls-files status env}, git maintenance list, git \
  rerere status, git ls-remote --get-url, git reflog list :: -x= -X=read --format= --sort= --exclude= --match= \
  --abbrev= --textconv!execute,?script --filters!execute,?script --in-place:edit *committed @read
git shortlog :: -w? --format= --since= --until= --author= --group= *committed @read
git {blame annotate} :: -L= -S=read -M? -C? --contents=read --ignore-revs-file=read --ignore-rev= --since= --date= \
  --abbrev= *committed @read
git rev-list :: -n= --max-count= --since= --until= --author= --format= *committed @read
git grep :: -e= -f=read -A= -B= -C= -m= --max-depth= --threads= -O?run --open-files-in-pager?run --no-index:read \
  *committed @read
git ls-remote :: --upload-pack=run --exec=run -o= --server-option= --sort= +network *remote
git fetch :: --upload-pack=run -o= --server-option= --depth= --deepen= -j= --jobs= --refmap= --recurse-submodules? \
  --filter= --shallow-since= --shallow-exclude= --negotiation-tip= +network 1remote *skip
git pull :: --upload-pack=run -o= --depth= -s= --strategy= -X= -r? --rebase? -j= --jobs= -S? --gpg-sign? --filter= \
  --no-verify!agent-config +network @write 1remote *skip
git clone :: --upload-pack=run -u=run -o= -b= --branch= --depth= --origin= --reference=read --template=read \
  -c=setting --config=setting --separate-git-dir=write --filter= -j= --jobs= --shallow-since= --server-option= \
  --bundle-uri=remote --recurse-submodules? +network 1remote 2write @write
git push :: --receive-pack=run --exec=run -o= --push-option= --repo=remote -f!git-history --force!git-history \
  --force-with-lease?!git-history --force-if-includes!git-history -d!git-history --delete!git-history \
  --mirror!git-history --prune!git-history --no-verify!agent-config --signed? --recurse-submodules= +network +egress \
  1remote *refspec
git {add stage} :: --pathspec-from-file=read --chmod= *staged @write
git hash-object :: -t= -w!write --path= *read
git remote show :: +network *skip
git commit :: -m= -F=read -C= -c= -t=read -S? -u? --message= --file=read --author= --date= --cleanup= \
  --template=read --fixup= --squash= --reuse-message= --reedit-message= --trailer= --gpg-sign? \
  --pathspec-from-file=read --amend!git-history -n!agent-config --no-verify!agent-config --untracked-files? *staged \
  @write
git {commit-tree mktag mktree write-tree read-tree update-index checkout-index unpack-file pack-objects \
  unpack-objects index-pack merge-file merge-index merge-one-file} :: *skip @write
git {checkout switch} :: -b= -B=!git-history -c= -C=!git-history --orphan= --conflict= -f!delete --force!delete \
  --discard-changes!delete --pathspec-from-file=!delete,?unknown-target -p!delete --patch!delete --ours!delete \
  --theirs!delete -2!delete -3!delete -t? --track? *discards @write
git restore :: -s= --source= --conflict= --pathspec-from-file=read -S --staged *restores
git rm :: --pathspec-from-file=read --cached:skip *delete
git mv :: *edit $write
git clean :: -e= --exclude= -n:skip --dry-run:skip *delete .delete
git stash, git stash {push save pop apply branch create store} :: -m= --message= --pathspec-from-file=read *skip \
  @write
git stash {drop clear} :: +git-history *skip
git merge :: -m= -F=read -s= -X= --strategy= --strategy-option= --into-name= -S? --gpg-sign? \
  --no-verify!agent-config -n *skip @write
git {cherry-pick revert} :: -m= -s= -X= -S? --strategy= --mainline= --gpg-sign? *skip @write
git rebase :: -x=run --exec=run -s= -X= -S? -C= --onto= --strategy= --whitespace= --no-verify!agent-config \
  +git-history *skip @write
git reset :: --hard!git-history,delete --merge!git-history --keep!git-history --soft!git-history --mixed \
  --pathspec-from-file=read *resets @write
git branch :: -d!git-history -D!git-history --delete!git-history -m!git-history -M!git-history --move!git-history \
  -f!git-history --force!git-history -c!write -C!git-history -u= --set-upstream-to= --unset-upstream!write \
  --edit-description!write --contains? --merged? --no-merged? --no-contains? --points-at= --format= --sort= -l \
  --list:skip -a:skip -r:skip -v:skip -vv:skip --all:skip --remotes:skip --show-current *branches
git tag :: -d!git-history --delete!git-history -f!git-history --force!git-history -a!write -s!write -u=!write \
  -m=!write -F=read -n? -l:skip --list:skip --contains? --sort= --format= --points-at= --merged? -v:skip \
  --verify:skip *branches
git remote, git remote {-v --verbose} :: *skip
git remote {add set-url rename remove rm set-head set-branches prune} :: -t= -m= +write +git-history *skip
git remote update :: +network *skip
git worktree {add move} :: -b= -B=!git-history --reason= --orphan 1write *skip
git worktree {remove prune} :: *delete
git worktree {lock unlock repair} :: +write *skip
git submodule {update add sync init deinit absorbgitdirs set-url set-branch} :: -b= --branch= --depth= \
  --reference=read -j= --name= +network +write +execute *skip
git submodule foreach :: +execute *run
git bisect {start good bad reset skip new old terms replay visualize next} :: +write *skip
git bisect run :: posix *command
git {filter-branch filter-repo replace update-ref symbolic-ref prune prune-packed fast-import fast-export refs graft \
  gc repack pack-refs history}, git reflog {expire delete} :: +git-history +?unknown-option *skip
git reflog :: -n= --date= --format= *skip @read
git apply :: --directory= -p= -C= --exclude= --include= --check:read --stat:read --numstat:read --summary:read \
  --build-fake-ancestor=write --unsafe-paths!write,?unknown-target *read @unpack
git am :: --directory= -p= -S? --exec= --patch-format= --no-verify!agent-config -n *read @unpack +git-history
git format-patch :: -o=write --output-directory=write --output=write -n -N --stdout --start-number= \
  --subject-prefix= -v= --to= --cc= --in-reply-to= --from? --signature= --signature-file=read --cover-letter -S= \
  *skip @write
git archive :: -o=write --output=write --format= --prefix= --remote=remote --exec=run --add-file=read \
  --add-virtual-file= --mtime= *committed @read
git bundle create :: 1write *skip
git bundle unbundle, git bundle :: +write *read
git notes, git notes {add append edit merge remove prune copy} :: -m= -F=read -C= -c= --ref= +write *skip
git init :: --template=read --separate-git-dir=write -b= --initial-branch= --shared? --object-format= *write @write
git {sparse-checkout rerere}, git sparse-checkout {set add init disable} :: +write *skip
git lfs, git lfs {pull fetch install track push migrate} :: +network +write +persist *skip
git maintenance, git maintenance {start register run} :: +persist +write *skip
git {credential credential-store credential-cache}, git credential fill :: +secret *skip
git {difftool mergetool} :: -t= --tool= -x=run --extcmd=run +execute +?code *skip
git {hook send-pack receive-pack upload-pack upload-archive http-push http-fetch daemon instaweb gui citool svn p4 \
  cvsimport cvsserver shell quiltimport imap-send request-pull fsmonitor--daemon web--browse remote-ext remote-fd \
  fetch-pack mergetool--lib} :: +execute +network +?unknown-program
git send-email :: +network +egress *read
"""
