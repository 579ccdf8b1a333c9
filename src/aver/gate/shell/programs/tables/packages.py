"""Package managers, which fetch, install and run software."""

from __future__ import annotations

TABLE = r"""
npm {run run-script test t tst start stop restart rebuild version pack}, pnpm {run test start build dev lint \
  rebuild}, yarn {run test start build dev lint}, bun {run test build} :: -[sraidq] --prefix=project -C=project \
  --script-shell=program --node-options=code -w= --workspace= --workspaces --if-present --silent --ignore-scripts \
  --include-workspace-root --recursive --parallel --stream --aggregate-output --filter= -F= --if-present --json \
  --dry-run --bail --watch --coverage --timeout= --no-bail --only --todo --rerun-each= -t= --test-name-pattern= \
  --outdir=write --outfile=write --target= --minify --sourcemap? --verbose --workspace-root --top-level \
  --foreground-scripts --loglevel= --color? --no-color --quiet --production --no-install -T -B \
  --pack-destination=write --allow-same-version --no-git-tag-version --preid= --cwd=project --clean --fix --ci \
  --runInBand --passWithNoTests --run --updateSnapshot -u +execute *passed
# A rule asks in any case, so its options need no list.
npm {install i add in ci clean-install update up upgrade dedupe prune link init create install-test it \
  install-ci-test uninstall un remove rm shrinkwrap innit}, npm audit fix, pnpm {install i add update up remove rm \
  link create import dedupe prune fetch env setup patch}, yarn {install add upgrade up remove link create global set \
  import plugin init}, bun {install i add update remove create link upgrade init} :: lax --registry=send \
  --prefix=write -C=project +network +install +execute
# Their operands are names of packages that are installed here.
npm {ls list ll la why explain root bin help query sbom find-dupes prefix --version}, pnpm {ls list why root bin \
  licenses store}, yarn {list why workspaces versions bin licenses --version}, yarn config list, bun pm :: -[alpgrP] \
  --prefix=project -C=project --all --json --long --parseable --global --depth= --omit= --include= --link \
  --package-lock-only --no-unicode -w= --workspace= --workspaces --include-workspace-root --prod --dev --production \
  --recursive --filter= --only= --pattern= --silent --sbom-format= --sbom-type= --cwd=project --pretty *skip @read
# Their operands are names of packages in the registry; a rule asks.
npm {outdated view info show v audit fund search doctor ping whoami diff docs repo bugs}, pnpm {outdated audit}, \
  yarn {info outdated audit} :: lax --prefix=project --registry=send +network *skip @read
# Settings may hold tokens; a rule asks.
npm config {list ls get}, pnpm config {list get}, yarn config get :: lax +secret *skip
# A rule asks in any case, so its options need no list.
npm {config set cache pkg completion edit get}, pnpm config, yarn {config cache}, bun config :: lax +persist +write \
  *skip
# Unclear in any case, so its options need no list.
npm {exec x}, pnpm dlx, yarn dlx, bun x :: lax -c=run --call=run -p= --package= +network +install +execute \
  +?unknown-program
# They publish, or concern accounts; a rule asks.
npm {publish unpublish deprecate dist-tag owner access login adduser logout token profile org team hook star stage}, \
  pnpm publish, yarn {publish npm login}, bun publish :: lax --registry=send --otp= +network +egress +secret *skip
npm, pnpm, yarn, bun :: -[rsvP] --prefix=project -C=project --dir=project --cwd=project --registry=send \
  --script-shell=program --userconfig=read!?environment --globalconfig=read!?environment -w= --workspace= --filter= \
  -F= --silent --node-options=code --workspaces --workspace-root --recursive --loglevel= --color? --no-color \
  --verbose --if-present --json --offline --prefer-offline --no-install --use-node-version=!install
# Unclear in any case, so its options need no list.
corepack, nvm, n, fnm, volta, asdf, mise, rtx, pyenv, rbenv, nodenv, goenv, jenv, sdk, sdkman, tfenv, rvm, proto, \
  devbox, devenv, pkgx :: lax +network +install +execute +?unknown-program
# Unclear in any case, so its options need no list.
npkill, ncu, npm-check-updates, npm-check, patch-package, husky, degit, giget, tiged, create-react-app, \
  create-next-app, create-vite, verdaccio :: lax +network +install +execute +?unknown-program
# Their operands are packages to fetch and install; a rule asks.
pip {install download wheel uninstall}, uv pip {install sync uninstall}, uv {add sync lock self venv init build \
  remove}, uv tool {install upgrade uninstall}, uv python {install pin}, pipx {install upgrade inject reinstall \
  uninstall}, poetry {add install update lock remove sync init new self build}, pipenv {install update lock sync \
  uninstall}, pdm {add install update lock sync remove init build}, conda {install create update remove env \
  upgrade}, mamba {install create update}, micromamba {install create}, pixi {install add global}, hatch {env build \
  dep}, rye {sync add install lock init}, pip-sync, pip-compile, easy_install :: lax -r=read --requirement=read \
  -c=read --constraint=read -e=read --editable=read -i=send --index-url=send --extra-index-url=send -f=send \
  --find-links=send -t=write --target=write --prefix=write --root=write --proxy=send --trusted-host= \
  --python=program +network +install +execute *skip
# They ask a registry; a rule asks.
pip {index search}, pip list {-o --outdated}, uv pip compile, poetry search, conda search, gem {search outdated}, \
  brew {search info outdated home}, snap {info find}, composer {outdated diagnose}, bundle outdated :: lax -i=send \
  --index-url=send --extra-index-url=send -o=write --output-file=write +network +egress *skip @read
# Their operands are names of packages that are installed here.
pip {list show freeze check --version help inspect hash debug completion}, uv pip {list show freeze check tree}, uv \
  {tree --version export help}, uv python {list find dir}, uv tool {list dir}, poetry {show check --version export \
  about list}, pipenv {graph check --venv --where requirements}, pdm {list info show}, conda {list info --version}, \
  mamba list, pipx list, hatch {project status}, rye {show list}, pixi {list info tree} :: -[lfqvhetaTn] -o=write \
  --output-file=write --python=program -p=program -r=read --requirement=read -i=send --index-url=send \
  --extra-index-url=send -f=send --find-links=send --outdated!network -u!network --uptodate!network --local --user \
  --path=read --pre --format= --not-required --exclude-editable --include-editable --editable --exclude= --all \
  --files --verbose --quiet --isolated --require-virtualenv --no-input --no-color --no-cache-dir \
  --disable-pip-version-check --no-python-version-warning --cache-dir=write --log=write --proxy=send --cert=read \
  --client-cert=secretfile --trusted-host=!network --keyring-provider=program --use-feature= --no-index --tree --why \
  --latest!network --top-level --only= --with= --without= --depth= --invert --frozen --locked --no-dev --no-group= \
  --group= --extra= --all-extras --all-groups --prune= --package= --system --strict --json --name= --prefix= --envs \
  --system --json-tree --reverse --no-hashes --without-hashes --no-emit-project --no-header --universal --offline \
  --no-sync --installed --csv *skip @read
# They set or bump the version of the project, or show it.
uv version, poetry {version env}, hatch version, rye version, pip cache, uv cache, pdm outdated :: lax +write *skip
# A rule asks in any case, so its options need no list.
pip config, poetry {config publish source}, conda {config token}, uv {auth publish}, pdm {publish config}, hatch \
  {publish config}, rye {publish config}, flit publish :: lax +network +egress +secret +persist *skip
pip, uv, poetry, pipenv, pdm, conda, mamba, micromamba, pipx, hatch, rye, pixi :: -[qvnP] --directory=project \
  --project=project --python=program -C=project -p=program --config-file=read!?environment --index-url=send \
  --isolated --cache-dir=write --quiet --verbose --no-input --no-color --offline --no-cache --color= --no-progress \
  --native-tls --no-python-downloads --no-interaction --no-ansi --no-plugins --disable-pip-version-check \
  --no-cache-dir --require-virtualenv --no-config -e= --env= --manifest-path=project
# Their operands are names of formulae that are installed here.
brew {list deps uses config doctor --version --prefix leaves desc} :: -[1lrtvq] --versions --formula --cask \
  --full-name --tree --installed --json? --include-build --recursive --multiple --pinned --eval-all --cellar *skip
# They install and remove software; a rule asks.
brew {install upgrade update reinstall tap uninstall remove link unlink bundle cleanup cask pin services autoremove \
  extract edit create} :: lax +network +install +system +execute *skip
# Their operands are names and patterns of packages, of which the lists here are shown.
apt {list show search policy}, apt-cache {search policy show madison depends rdepends pkgnames stats showpkg}, dpkg \
  {-l -L -S -s --list --status --listfiles --search --print-architecture}, dpkg-query {-l -W -L -S -s --show \
  --list}, apk {info list search}, yum {list info search}, dnf {list info search repoquery}, pacman {-Q -Qi -Ql -Ss \
  -Si}, snap list, flatpak list, zypper {search info}, port {installed search}, choco list, scoop list, winget {list \
  search} :: -[aqvnleidLWSsf] -f= --installed --upgradable --all-versions -a --names-only --full --no-pager \
  --showformat= --manual-installed --columns= --app --all --short --quiet *skip
# Its operands are names of packages; options that take a file, a root or a command are not listed.
rpm {-q -qa -qi -ql -qf -qR -qc -qd} :: -[ailRcdsvq] --all --info --list --requires --provides --changelog --last \
  --queryformat= --qf= --conflicts --obsoletes --whatrequires --whatprovides --pipe=run --root=!?unknown-target \
  --define=code --eval=code -E=code --load=program --rcfile=program --macros=program --dbpath=read -p=read -f=read \
  *skip
# Unclear in any case: its expressions are code that reads files and fetches.
nix {search eval flake}, nix flake {show metadata check}, nix-env -q :: lax +network +execute +?code *skip
# A rule asks in any case, so its options need no list.
dpkg, dpkg-reconfigure, add-apt-repository, apt-key, apt-mark, apk, yum, dnf, microdnf, tdnf, pacman, yay, paru, \
  rpm, zypper, snap, flatpak, port, emerge, xbps-install, pkg, pkg_add, nix, nix-env, nix-shell, nix-build, \
  nix-channel, nixos-rebuild, home-manager, guix, choco, scoop, winget, mas, slackpkg, opkg, tlmgr, cpan, cpanm, \
  cpanminus, luarocks, ppm :: lax +network +install +system +execute *skip
# A rule asks in any case, so its options need no list.
apt, apt-get, aptitude :: lax -o=code -c=read -t= --config-file=read +network +install +system +execute *skip
# Their operands are names of packages that are installed here; the last ones show files of the project.
gem {list info env which --version contents}, bundle {list info show check --version}, composer {show validate \
  licenses --version why} :: -[aldqvtiDHNof] --local --all --versions --no-versions --exact --details --installed \
  --prefix --lib-only --only-group= --without-group= --paths --path --name-only --tree --direct --outdated!network \
  --format= --no-dev --self --platform --strict --no-check-all --no-check-publish --dry-run --quiet \
  --working-dir=project -d=project *skip @read
# They fetch and install packages; a rule asks.
gem {install update uninstall build fetch unpack}, bundle {install update add remove lock init config cache package \
  clean}, composer {install update require remove create-project dump-autoload global config self-update init \
  reinstall} :: lax -d=project --working-dir=project +network +install +execute *skip
# A rule asks in any case, so its options need no list.
gem {push yank owner signin}, bundle gem, composer archive :: lax +network +egress +secret *skip
# They run scripts of the project; a rule asks.
composer {run-script run test exec check lint} :: lax +execute *skip
uv run :: -[qvs] -p=program --python=program --with=!network,install --with-requirements=read!network,install \
  --with-editable=program!install --extra= --group= --env-file=read!?environment -m=module --module=module \
  --project=project --directory=project --package= --index=send --index-url=send --extra-index-url=send \
  --default-index=send --find-links=send --no-sync --frozen --locked --isolated --active --only-group= --no-group= \
  --all-extras --all-groups --no-default-groups --only-dev --dev --no-dev --script --gui-script --no-project \
  --no-cache --offline --refresh!network --exact --no-env-file --no-editable --no-progress --quiet --verbose \
  --resolution= --prerelease= --color= --no-python-downloads --no-config posix *command
# Their operands are a program and its arguments.
poetry run, pipenv run, rye run, bundle exec, yarn exec :: posix *command
pdm run :: -[s] --site-packages -p=project --project=project posix *command
pixi run :: -e= --environment= --manifest-path=project posix *command
pnpm exec :: -[r] --recursive -c!execute,?dynamic-code posix *command
# Unclear in any case, so its options need no list.
hatch run :: lax +execute +?script
conda run, mamba run, micromamba run :: -[v] --no-capture-output --live-stream --dev -n= -p= --name= --prefix= \
  --cwd= posix *command
gem, bundle, composer :: -d=project --working-dir=project --no-interaction -n --no-ansi --ansi --quiet -q
# Unclear in any case, so its options need no list.
poetry shell, pipenv shell, hatch shell, pdm venv, conda shell :: lax +execute +?dynamic-code
"""

LOCKED_TABLE = r"""
npm {ci clean-install} :: | -[s] --no-audit --no-fund --ignore-scripts --prefer-offline --offline --silent \
  --loglevel= --omit= --include= --no-progress --progress? --audit? --fund? --legacy-peer-deps --no-optional \
  --verbose --quiet
pnpm {install i} :: --frozen-lockfile | -[rPD] --frozen-lockfile --ignore-scripts --offline --prefer-offline --prod \
  --dev --no-optional --recursive --silent --reporter= --strict-peer-dependencies --no-strict-peer-dependencies
yarn install :: --frozen-lockfile --immutable | -[s] --frozen-lockfile --immutable --ignore-scripts --offline \
  --prefer-offline --production --silent --non-interactive --ignore-optional --no-progress --inline-builds \
  --check-files --immutable-cache --check-cache --network-timeout= --verbose
bun {install i} :: --frozen-lockfile | --frozen-lockfile --production --ignore-scripts --silent --no-progress \
  --verbose
uv sync :: | -[qv] --frozen --locked --all-extras --all-groups --extra= --group= --only-group= --no-group= --dev \
  --no-dev --only-dev --no-install-project --inexact --exact --offline --quiet --verbose --all-packages --package= \
  --no-progress --no-default-groups --no-editable --check --dry-run
pip install, uv pip install :: -e --editable | -[qv] -e= --editable= --no-deps --no-build-isolation --quiet \
  --verbose --no-input --no-color --disable-pip-version-check --no-warn-script-location --progress-bar= \
  --no-cache-dir --group=
poetry install :: | -[nqv] --no-root --sync --no-dev --with= --without= --only= --only-root --extras= -E= \
  --all-extras --no-interaction --no-ansi --quiet --verbose --no-directory --all-groups --compile --dry-run
cargo fetch :: --locked --frozen | -[qv] --locked --frozen --offline --quiet --verbose --target= --color=
bundle install :: --frozen --deployment | --frozen --deployment --quiet --local --jobs= -j= --retry= --without= \
  --with= --no-color --verbose
go mod download :: | -json -x onedash
# They build the workspace's own package, as `pip install -e .` does.
hatch build :: | -[qvc] --clean -t= --target=
uv build :: | -[qv] --sdist --wheel --offline --no-progress --quiet --verbose --all-packages --package=
poetry build :: | -[nqv] -f= --format= --no-interaction --no-ansi --quiet --verbose --clean
pdm build :: | -[qv] --no-sdist --no-wheel --no-clean --quiet --verbose
composer install :: | -[noqv] --no-interaction --no-progress --no-dev --no-scripts --no-plugins --prefer-dist \
  --prefer-source --optimize-autoloader --ignore-platform-reqs --quiet --verbose --no-ansi --ansi --dry-run \
  --classmap-authoritative --no-autoloader
"""
"""Installs of what a lock file names, or of the workspace itself. Before the bar stand options of which one is needed,
after it all options that leave the install as it is. With any other option or an operand, the line above counts."""
