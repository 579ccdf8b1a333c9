"""Package managers, which fetch, install and run software."""

from __future__ import annotations

TABLE = r"""
npm {run run-script test t start stop restart rebuild version pack}, pnpm {run test start build dev lint rebuild}, \
  yarn {run test start build dev lint}, bun {run test build} :: --prefix=project -C=project --script-shell=program \
  --node-options=code -w= --workspace= +execute
npm {install i add ci update up upgrade dedupe prune link init create install-test it install-ci-test uninstall un \
  remove rm shrinkwrap innit}, npm audit fix, pnpm {install i add update up remove rm link create import dedupe \
  prune fetch env setup patch}, yarn {install add upgrade up remove link create global set import plugin init}, bun \
  {install i add update remove create link upgrade init} :: --registry=send --prefix=write -C=project +network \
  +install +execute
npm {ls list ll la why explain root bin help query sbom find-dupes prefix --version}, pnpm {ls list why root bin \
  licenses store}, yarn {list why workspaces versions bin licenses --version}, yarn config list, bun pm :: \
  --prefix=project *skip @read
npm {outdated view info show v audit fund search doctor ping whoami diff docs repo bugs}, pnpm {outdated audit}, \
  yarn {info outdated audit} :: --prefix=project --registry=send +network *skip @read
npm config {list ls get}, pnpm config {list get}, yarn config get :: +secret *skip
npm {config set cache pkg completion edit get}, pnpm config, yarn {config cache}, bun config :: +persist +write \
  *skip
npm {exec x}, pnpm dlx, yarn dlx, bun x :: -c=run --call=run -p= --package= +network +install +execute \
  +?unknown-program
npm {publish unpublish deprecate dist-tag owner access login adduser logout token profile org team hook star stage}, \
  pnpm publish, yarn {publish npm login}, bun publish :: --registry=send --otp= +network +egress +secret *skip
npm, pnpm, yarn, bun :: --prefix=project -C=project --cwd=project --registry=send --script-shell=program \
  --userconfig=read --globalconfig=read -w= --workspace= --filter= -F= -r --silent -s --node-options=code
corepack, nvm, n, fnm, volta, asdf, mise, rtx, pyenv, rbenv, nodenv, goenv, jenv, sdk, sdkman, tfenv, rvm, proto, \
  devbox, devenv, pkgx :: +network +install +execute +?unknown-program
npkill, ncu, npm-check-updates, npm-check, patch-package, husky, degit, giget, tiged, create-react-app, \
  create-next-app, create-vite, verdaccio :: +network +install +execute +?unknown-program
pip {install download wheel uninstall}, uv pip {install sync uninstall}, uv {add sync lock self venv init build \
  remove}, uv tool {install upgrade uninstall}, uv python {install pin}, pipx {install upgrade inject reinstall \
  uninstall}, poetry {add install update lock remove sync init new self build}, pipenv {install update lock sync \
  uninstall}, pdm {add install update lock sync remove init build}, conda {install create update remove env \
  upgrade}, mamba {install create update}, micromamba {install create}, pixi {install add global}, hatch {env build \
  dep}, rye {sync add install lock init}, pip-sync, pip-compile, easy_install :: -r=read --requirement=read -c=read \
  --constraint=read -e=read --editable=read -i=send --index-url=send --extra-index-url=send -f=send \
  --find-links=send -t=write --target=write --prefix=write --root=write --proxy=send --trusted-host= \
  --python=program +network +install +execute *skip
pip {index search}, pip list {-o --outdated}, uv pip compile, poetry search, conda search, gem {search outdated}, \
  brew {search info outdated home}, snap {info find}, composer {outdated diagnose}, bundle outdated :: \
  -i=send --index-url=send --extra-index-url=send -o=write --output-file=write +network +egress *skip @read
pip {list show freeze check --version help inspect hash debug cache completion}, uv pip {list show \
  freeze check tree}, uv {tree version --version export cache help}, uv python {list find dir}, uv tool \
  {list dir}, poetry {show check env version --version export about list}, pipenv {graph check --venv --where \
  requirements}, pdm {list info show outdated}, conda {list info --version}, mamba list, pipx list, hatch \
  {version project status}, rye {show list version}, pixi {list info tree} :: -o=write --output-file=write \
  --python=program -p= -i=send --index-url=send --extra-index-url=send --outdated!network -u!network *skip @read
pip config, poetry {config publish source}, conda {config token}, uv {auth publish}, pdm {publish config}, hatch \
  {publish config}, rye {publish config}, flit publish :: +network +egress +secret +persist *skip
pip, uv, poetry, pipenv, pdm, conda, mamba, micromamba, pipx, hatch, rye, pixi :: --directory=project \
  --project=project --python=program -C=project -p=program --config-file=read --index-url=send -q -v --isolated \
  --cache-dir=write -n
brew {list deps uses config doctor --version --prefix leaves desc} :: *skip
brew {install upgrade update reinstall tap uninstall remove link unlink bundle cleanup cask pin services autoremove \
  extract edit create} :: +network +install +system +execute *skip
apt {list show search policy}, apt-cache, apt-cache {search policy show madison}, dpkg {-l -L -S -s --list --status \
  --print-architecture}, dpkg-query {-l -W}, apk {info list search}, yum {list info search}, dnf {list info search \
  repoquery}, pacman {-Q -Qi -Ql -Ss -Si}, rpm {-q -qa -qi -ql -qf}, snap list, flatpak list, zypper \
  {search info}, port {installed search}, nix {search eval}, nix flake show, nix-env -q, choco list, scoop list, \
  winget {list search} :: *skip
dpkg, dpkg-reconfigure, add-apt-repository, apt-key, apt-mark, apk, yum, dnf, microdnf, tdnf, pacman, yay, paru, \
  rpm, zypper, snap, flatpak, port, emerge, xbps-install, pkg, pkg_add, nix, nix-env, nix-shell, nix-build, \
  nix-channel, nixos-rebuild, home-manager, guix, choco, scoop, winget, mas, slackpkg, opkg, tlmgr, cpan, cpanm, \
  cpanminus, luarocks, ppm :: +network +install +system +execute *skip
apt, apt-get, aptitude :: -o=code -c=read -t= --config-file=read +network +install +system +execute *skip
gem {list info env which --version contents}, bundle {list info show check --version}, \
  composer {show validate licenses --version why} :: *skip @read
gem {install update uninstall build fetch unpack}, bundle {install update add remove lock init config cache package \
  clean}, composer {install update require remove create-project dump-autoload global config self-update init \
  reinstall} :: -d=project --working-dir=project +network +install +execute *skip
gem {push yank owner signin}, bundle gem, composer archive :: +network +egress +secret *skip
composer {run-script run test exec check lint} :: +execute *skip
uv run :: -p=program --python=program --with=install --with-requirements=read --with-editable=program --extra= \
  --group= --env-file=read -m=module --module=module --project=project --directory=project --package= --index=send \
  --index-url=send --default-index=send --no-sync --frozen --locked --isolated -q -v --active --only-group= \
  --no-group= --all-extras --all-groups --dev --no-dev -s --script (--no-project --no-cache --offline --refresh \
  --quiet --verbose) strict posix *command
poetry run, pipenv run, rye run, bundle exec, yarn exec :: strict posix *command
pdm run :: (-s --site-packages) -p=project --project=project strict posix *command
pixi run :: -e= --environment= --manifest-path=project strict posix *command
pnpm exec :: (-r --recursive) -c!execute,?dynamic-code strict posix *command
hatch run :: +execute +?script
conda run, mamba run, micromamba run :: (-v --no-capture-output --live-stream --dev) -n= -p= --name= --prefix= \
  --cwd= strict posix *command
gem, bundle, composer :: -d=project --working-dir=project
poetry shell, pipenv shell, hatch shell, pdm venv, conda shell :: +execute
"""
