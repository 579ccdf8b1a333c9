"""Tools that build, check and test. Most of them run the workspace's own code: the effect is `execute`, and clear.

A build may write its output, its cache and its reports. An option that names a file to write has the verb `write`, so
that a report does not overwrite a source unseen.
"""

from __future__ import annotations

_CARGO = r"""-[vqrh] -p= -F= -j= -Z=code --package= --workspace --exclude= --all --lib --bins --bin= \
  --examples --example= \
  --tests --test= --benches --bench= --all-targets --features= --all-features --no-default-features --release \
  --profile= --jobs= --keep-going --target= --target-dir=write --artifact-dir=write --out-dir=write --unit-graph \
  --timings? --manifest-path=project --ignore-rust-version --locked --offline --frozen --message-format= --verbose \
  --quiet --color= --config=code --future-incompat-report --lockfile-path=write"""
"""Options that most subcommands of cargo share."""

TABLE = r"""
# It starts with plugins and files of the workspace. `-p` and `-o` can name any plugin and any setting.
pytest, py.test :: -[xvqslfdhVg] -k= -m= -r= -n= -c=read -W= -p=pytestplugin -o=pytestsetting --exitfirst --maxfail= \
  --strict-config --strict-markers --strict --fixtures --funcargs --fixtures-per-test --pdb --pdbcls=code --trace \
  --capture= --runxfail --lf --last-failed --ff --failed-first --nf --new-first --cache-show? --cache-clear --lfnf= \
  --last-failed-no-failures= --sw --stepwise --sw-skip --stepwise-skip --sw-reset --stepwise-reset --durations= \
  --durations-min= --verbose --no-header --no-summary --no-fold-skipped --force-short-summary --quiet --verbosity= \
  --report-chars= --disable-warnings --disable-pytest-warnings --showlocals --no-showlocals --tb= --xfail-tb \
  --show-capture= --full-trace --color= --code-highlight= --pastebin=!network,egress --junitxml=write \
  --junit-xml=write --junit-prefix= --junitprefix= --pythonwarnings= --max-warnings= --collect-only --co --pyargs \
  --ignore= --ignore-glob= --deselect= --confcutdir=read --noconftest --keep-duplicates --collect-in-virtualenv \
  --continue-on-collection-errors --import-mode= --doctest-modules --doctest-report= --doctest-glob= \
  --doctest-ignore-import-errors --doctest-continue-on-failure --config-file=read --rootdir=read --basetemp=write \
  --disable-plugin-autoload --trace-config --debug=write --override-ini=pytestsetting --assert= --setup-only \
  --setup-show --setup-plan --log-level= --log-format= --log-date-format= --log-cli-level= --log-cli-format= \
  --log-cli-date-format= --log-file=write --log-file-mode= --log-file-level= --log-file-format= \
  --log-file-date-format= --log-auto-indent= --log-disable= --hypothesis-profile= --hypothesis-verbosity= \
  --hypothesis-show-statistics --hypothesis-seed= --hypothesis-explain --numprocesses= --maxprocesses= \
  --max-worker-restart= --dist= --loadscope-reorder --no-loadscope-reorder --tx=code --px=code \
  --rsyncdir=read!egress --rsyncignore= --testrunuid= --maxschedchunk= --looponfail --anyio-mode= --asyncio-mode= \
  --asyncio-debug --timeout= --timeout-method= --session-timeout= --cov? --cov-report=coverreport --cov-config=read \
  --no-cov --no-cov-on-fail --cov-fail-under= --cov-append --cov-branch --cov-context= --cov-reset --benchmark-skip \
  --benchmark-only --benchmark-disable --benchmark-json=write --snapshot-update --mypy --flake8 --ruff --black \
  --reruns= --reruns-delay= --only-rerun= --randomly-seed= --random-order --random-order-seed= --html=write \
  --self-contained-html --json-report --json-report-file=write --count= --repeat-scope= --ds= --dc= --reuse-db \
  --create-db --nomigrations --no-migrations --migrations --lf --runslow --slow --run-slow --integration --live \
  --headed --browser= --sugar --no-sugar +execute *tests
# They start environments, servers or other machines that their own files name. A rule asks about each of them.
tox, nox, nosetests, robot, locust, hypothesis, pytest-watch, ptw, pre-commit :: lax -c=read --junitxml=write \
  --log-file=write -p= -o= -k= -m= -n= +execute
unittest, behave, stestr :: -[vqfcbkhsSTdDwe] -k= -s= -p= -t= -D= -n= -i= -e= -f= -o=write --verbose --quiet \
  --failfast --catch --buffer --locals --start-directory= --pattern= --top-level-directory= --durations= --tags= \
  --format= --stop --no-capture --name= --include= --exclude= --junit --junit-directory=write --outfile=write \
  --logging-level= --no-color --color --dry-run --steps-catalog +execute
pyright, basedpyright, pyre, pytype, pyrefly, ty :: -[hvw] -p=read -t=read -v=read --pythonpath=program \
  --python-executable=program --project=read --config-file=read --cache-dir=write --junit-xml=write --outputjson \
  --stats --verbose --warnings --level= --pythonversion= --pythonplatform= --typeshedpath=read --venvpath=read \
  --venv-path=read --threads? --dependencies --skipunannotated --verifytypes= --ignoreexternal --watch \
  --python-version= --python-platform= --output-format= --error= --warn= --ignore= --exit-zero --python=program \
  --createstub=!write --writebaseline!write --baselinefile=write -m= -c= -j= -k --keep-going --jobs= -o=write \
  --output=write *read .read
mypy, dmypy :: -[vVhio2s] -O= -n= -m= -p= -c=code --command=code --module= --package= --output= --num-workers= \
  --python-executable=program --config-file=project --cache-dir=write --junit-xml=write --junit-format= \
  --install-types!install --non-interactive --any-exprs-report=write --cobertura-xml-report=write \
  --html-report=write --linecount-report=write --linecoverage-report=write --lineprecision-report=write \
  --txt-report=write --xml-report=write --xslt-html-report=write --xslt-txt-report=write --custom-typeshed-dir=read \
  --custom-typing-module= --shadow-file==read --timing-stats=write --line-checking-stats=write --verbose \
  --warn-unused-configs --namespace-packages --ignore-missing-imports --follow-untyped-imports --follow-imports= \
  --site-packages --silence-site-packages --python-version= --platform= --always-true= --always-false= \
  --disallow-any-expr --disallow-any-decorated --disallow-any-explicit --disallow-any-generics \
  --disallow-any-unimported --disallow-subclassing-any --disallow-untyped-calls --untyped-calls-exclude= \
  --disallow-untyped-defs --disallow-incomplete-defs --check-untyped-defs --disallow-untyped-decorators \
  --implicit-optional --strict-optional --warn-redundant-casts --warn-unused-ignores --warn-no-return \
  --warn-return-any --warn-unreachable --report-deprecated-as-note --deprecated-calls-exclude= \
  --allow-untyped-globals --allow-redefinition --local-partial-types --implicit-reexport --strict-equality \
  --strict-bytes --extra-checks --strict --disable-error-code= --enable-error-code= --enable-incomplete-feature= \
  --show-error-context --show-column-numbers --show-error-end --hide-error-codes --show-error-codes \
  --show-error-code-links --hide-error-code-links --pretty --color-output --error-summary --show-absolute-path \
  --incremental --sqlite-cache --cache-fine-grained --skip-version-check --skip-cache-mtime-checks --pdb \
  --show-traceback --tb --raise-exceptions --warn-incomplete-stub --find-occurrences= --scripts-are-modules \
  --explicit-package-bases --fast-module-lookup --exclude= --exclude-gitignore --bazel --dump-type-stats \
  --dump-inference-stats --soft-error-limit= no +execute *object .read
ruff check :: -[wehnvqs] --fix:edit --fix-only:edit --add-noqa?:edit --add-ignore?:edit -o=write --output-file=write \
  --config=read --unsafe-fixes --show-fixes --diff:read --watch --ignore-noqa --output-format= --target-version= \
  --preview --extension= --statistics --show-files --show-settings --select= --ignore= --extend-select= \
  --extend-ignore= --per-file-ignores= --extend-per-file-ignores= --fixable= --unfixable= --extend-fixable= \
  --extend-unfixable= --exclude= --extend-exclude= --respect-gitignore --force-exclude --no-cache --cache-dir=write \
  --stdin-filename= --exit-zero --exit-non-zero-on-fix --verbose --quiet --silent --isolated --line-length= \
  --dummy-variable-rgx= --color= no *object .read
ruff format :: -[hnvqs] --check:read --diff:read --config=read --line-length= --exclude= --extend-exclude= \
  --cache-dir=write --stdin-filename= --target-version= --extension= --preview --respect-gitignore --force-exclude \
  --no-cache --range= --exit-non-zero-on-format --output-format= --verbose --quiet --silent --isolated --color= no \
  *edit .write
# Their operands are names of rules and settings, which they explain.
ruff {rule linter config version} :: -[hqv] --all --output-format= --verbose --quiet *skip
# Unclear in any case, so its options need no list.
ruff server :: lax +execute +?code
ruff clean :: *delete .delete
ruff :: --config=read --isolated -v -q -s --verbose --quiet --silent --color=
black, isort, autopep8, yapf, docformatter, autoflake, pyupgrade, add-trailing-comma, ssort, usort :: \
  -[qvirSCdxaepzh] --check:read --check-only:read --diff:read -c:read -l= -t= -w= -m= -s= -p= -j= -W= -o= -f= -k= \
  --line-length= --config=read --settings-path=read --settings-file=read --sp=read --profile= --quiet --verbose \
  --fast --safe --target-version= --skip-string-normalization --skip-magic-trailing-comma --preview --unstable --pyi \
  --ipynb --include= --exclude= --extend-exclude= --force-exclude= --stdin-filename= --workers= --color --no-color \
  --required-version= --line-ranges= --no-cache --in-place --recursive --aggressive --max-line-length= --select= \
  --ignore= --style= --parallel --atomic --filter-files --skip= --skip-glob= --known-first-party= --float-to-top \
  --ac --jobs= --multi-line= --trailing-comma --remove-all-unused-imports --remove-unused-variables --imports= \
  --expand-star-imports --ignore-init-module-imports --py3-plus --py36-plus --py37-plus --py38-plus --py39-plus \
  --py310-plus --py311-plus --py312-plus --keep-percent-format --wrap-summaries= --wrap-descriptions= \
  --enable-unstable-feature= --stdout:read --dry-run:read *edit
flake8, pylint, ansible-lint, sqlfluff, checkov, cppcheck :: -[qvhjEipsx] --fix:edit -w:edit -j= -d= -e= -r= -f= -s= \
  --rcfile=project --config=project -c=project --append-config=project --output-file=write --output=write --tee \
  -o=write --init-hook=code --load-plugins=project --enable-extensions= --max-line-length= --max-complexity= \
  --max-doc-length= --select= --ignore= --extend-ignore= --extend-select= --per-file-ignores= --exclude= \
  --extend-exclude= --filename= --format= --count --statistics --benchmark --show-source --no-show-source --verbose \
  --quiet --jobs= --exit-zero --disable= --enable= --errors-only --output-format= --reports= --score= --fail-under= \
  --fail-on= --py-version= --ignore-paths= --ignore-patterns= --msg-template= --recursive= --persistent= \
  --disable-noqa --hang-closing --doctests --color= --isolated --disable-all --std= --suppress= --platform= \
  --inconclusive --error-exitcode= --language= --force --dialect= --rules= --framework= --check= --skip-check= \
  --compact --quiet +execute *read .read
# With `-w` or `--fix` they change what they check; without a file they check everything here.
codespell, typos, markdownlint, markdownlint-cli2, markdownlint-fix :: -[qhfHdcsFi] -w:edit --fix:edit \
  --write-changes:edit -S= -L= -I=read -D=read -c=program --config=program --builtin= --skip= --ignore-words=read \
  --ignore-words-list= --ignore-regex= --exclude-file=read --dictionary=read --check-filenames --check-hidden \
  --quiet-level= --count --context= --interactive= --summary --diff --format= --exclude= --force-exclude --hidden \
  --files --isolated --locale= --ignore= --disable= --enable= --rules=program --dot --json --output=write -o=write \
  *read .read
pycodestyle, pydocstyle, pyflakes, bandit, vulture, radon, xenon, yamllint, shellcheck, hadolint, actionlint, \
  proselint, doc8, darglint, interrogate, detect-secrets, tflint, cfn-lint, cpplint, luacheck, jsonlint, xmlwf, \
  htmlhint, vale, jscpd, lizard, editorconfig-checker, zizmor :: -[qvhrnilasxejcCmS] --fix:edit -i --rcfile=read \
  --config=read -c=read -e= -f= -s= -S= -t= -x= -o=write --output-file=write --output=write --tee --init-hook=code \
  --load-plugins=program --max-line-length= --select= --ignore= --exclude= --format= --count --statistics \
  --show-source --show-pep8 --first --verbose --quiet --recursive --severity= --shell= --external-sources --enable= \
  --color? --no-color --list-files --strict --config-file=read --config-data= --min-confidence= --sort-by-size \
  --skip= --tests= --severity-level= --confidence-level= --baseline=read --exit-zero --convention= --add-ignore= \
  --fail-under= --ignore-init-method --ignore-nested-functions --generate-badge=write --filter= --minAlertLevel= \
  --no-exit --offline --persona= --min-severity= *read .read
# Its operands are names of files or modules to report on; code of the workspace may shape the report.
coverage report :: -[im] --rcfile=project --include= --omit= --show-missing --skip-covered --no-skip-covered \
  --skip-empty --fail-under= --precision= --sort= --format= --contexts= --data-file=read --ignore-errors --quiet \
  +execute *skip @read
# Their operands are names of data files to join. Without an option they write `.coverage`, `coverage.xml` or `htmlcov`.
coverage {html xml json combine lcov} :: -[iqa] -o=write -d=write --directory=write --rcfile=project --include= \
  --omit= --title= --show-contexts --skip-covered --no-skip-covered --skip-empty --fail-under= --precision= \
  --pretty-print --append --keep --data-file=edit --contexts= --ignore-errors --quiet +execute *skip
coverage erase :: --rcfile=program --data-file=delete .delete
# The program that it runs, and its arguments; a rule asks unless the tests know it.
coverage run :: -[paLq] -m= --source= --omit= --include= --rcfile=project --append --branch --parallel-mode \
  --concurrency= --context= --data-file=write --debug= --timid --pylib --module --source-pkg= posix +execute *skip
coverage :: --rcfile=program
sphinx-build :: -[aEnvqQTNWCh] -b=sphinx -M=sphinx -d=pages -j= -t= -c=project -w=write -D=!?environment \
  -A=!?environment -P!?dynamic-code --builder=sphinx --jobs= --write-all --fresh-env --tag= --conf-dir=project \
  --doctree-dir=pages --isolated --define=!?environment --html-define=!?environment --nitpicky --verbose --quiet \
  --silent --warning-file=write --fail-on-warning --keep-going --exception-on-warning --show-traceback --no-color \
  --color --pdb!?dynamic-code +execute 1project 2pages *project
golint :: -min_confidence= -set_exit_status onedash *read .read
misspell :: -w:edit -error -locale= -i= -j= -q -source= -debug -legal -f= -o=write onedash *read
# Its first operand is the task: `effects.routine_commands` says which ones build.
mkdocs :: -[qvsch] -f=project -d=write -t= --config-file=project --site-dir=write --strict --no-strict --clean --dirty \
  --quiet --verbose --theme= --use-directory-urls --no-directory-urls +execute
# Unclear in any case: servers, notebooks, builders and shells.
pdoc, jupyter, jupyter-nbconvert, nbstripout, papermill, pip-audit, safety, twine, flit, \
  build, cibuildwheel, maturin, scons, waf, invoke, doit, fabric, alembic, django-admin, flask, uvicorn, gunicorn, \
  hypercorn, celery, streamlit, gradio, airflow, dbt, dvc, mlflow, wandb, huggingface-cli, cookiecutter, copier, \
  pyinstaller, nuitka, cython, f2py, py-spy, memray, scalene, kernprof, snakeviz, ipython, bpython, ptpython, pdb, \
  pudb :: lax +execute +?unknown-option
make, gmake, bmake, remake :: -[bmBdehikLnpqrRsStvw] -f=program --file=program --makefile=program -C=project \
  --directory=project -I=read --include-dir=read -j? -l? -o= -W= -O? --eval=code -E=code --jobs? --always-make \
  --debug? --environment-overrides --ignore-errors --keep-going --load-average? --max-load? --check-symlink-times \
  --just-print --dry-run --recon --old-file= --assume-old= --output-sync? --print-data-base --question \
  --no-builtin-rules --no-builtin-variables --silent --quiet --no-silent --no-keep-going --stop --touch --trace \
  --print-directory --no-print-directory --what-if= --new-file= --assume-new= --warn-undefined-variables --shuffle? \
  gnu +execute *makes
# Its scripts and generators run code; other options than these are unclear.
cmake :: -[NLALHv] -S=project -B=write -G= -D=definition -C=program -P=program -E=cmakes -A= -T=code -U= -W? \
  --build=project --install=project --preset= --target= -j? -t= --config= --parallel? --clean-first --verbose \
  --fresh --log-level= --workflow --list-presets? --toolchain=program --prefix=write --trace --debug-output \
  --warn-uninitialized --no-warn-unused-cli -Wdev -Wno-dev --use-stderr --resolve-package-references= --strip \
  --component= --graphviz=write --trace-redirect=write --profiling-output=write --system-information=write +execute \
  *read
# Runners of tasks and builds: which options are harmless is listed with the tasks (`effects.routine_commands`).
ninja, samu, ctest, cpack, meson, rake, just, task, mage, gradle, gradlew, mvn, mvnw, ant :: lax -f=program \
  -C=project -j? -t= -k= --file=program --project-dir=project -p? +execute
# They build, deploy and fetch as their files say. A rule asks about each of them.
bazel, bazelisk, buck2, pants, gn, autoconf, automake, autoreconf, configure, libtoolize, earthly, dagger, tilt, \
  skaffold, sbt, lein, mill, boot, bloop, kotlinc, scalac, groovy, kotlin, scala :: lax -f=program -C=project \
  --file=program --project-dir=project +execute
# Compilers take hundreds of options, some of which name programs and plugins. A rule asks about each of them.
gcc, g++, cc, c++, clang, clang++, ld, as, tcc, icc, zig, nasm, yasm, nvcc, gfortran, rustc, javac, ghc, ocamlfind, \
  ocamlopt, ocamlc, fpc, dmd, ldc2, crystal, nim, v, odin, swiftc, mcs, csc, fsc, vbc, elm, purs, spago, solc, vyper \
  :: lax -o=write +execute *read
# They rewrite or generate what they are given. A rule asks about each of them.
strip, objcopy, ranlib, install_name_tool, codesign, patchelf, protoc, flatc, thrift, swig, bison, flex, yacc, lex, \
  antlr4, re2c, gperf, ctags, etags, cscope, doxygen, clang-tidy, google-java-format, ktlint, scalafmt, swiftformat, \
  swiftlint, buf, dartfmt, ormolu, fourmolu, nixfmt, alejandra, taplo, dprint, rufo, standardrb :: lax -o=write \
  +execute *edit
gofmt, goimports, gofumpt, shfmt :: -[ldsepveh] -w:edit -r= -i= -ln= -local= -srcdir= -format-only -extra -lang= \
  -modpath= -cpuprofile=write -memprofile=write -trace=write -bn -ci -sr -kp -fn -mn -tojson -filename= onedash \
  *read
clang-format :: -[nhv] -i:edit --style= -style= --assume-filename= --files=read!?unknown-target --dry-run --Werror \
  --verbose --fallback-style= --lines= --offset= --length= --sort-includes --dump-config --cursor= *read
rustfmt :: -[lvqh] --check:read --edition= --style-edition= --config= --config-path=read --emit= --backup --color= \
  --print-config=!write --files-with-diff --verbose --quiet *edit
stylua :: -[fgsv] --check:read --config-path=read --verify --glob= --search-parent-directories --color= \
  --output-format= --stdin-filepath= --respect-ignores --allow-hidden --syntax= --indent-type= --column-width= *edit
cargo {build b check c rustc} :: <cargo> +execute
cargo {test t bench nextest} :: <cargo> --no-run --no-fail-fast --doc --nocapture --test-threads= --fail-fast \
  --retries= --run-ignored= --partition= --no-capture --status-level= --final-status-level= --success-output= \
  --failure-output= -E= --filter-expr= --cargo-quiet --archive-file=program --config-file=project \
  --tool-config-file=project --workspace-remap=program +execute
cargo {clippy doc d} :: <cargo> --no-deps --fix --explain= --open!execute,?unknown-program --document-private-items \
  --allow-dirty --allow-staged --allow-no-vcs --broken-code -W= -A= -D= +execute
# They run, fetch, watch or rewrite as their own options say. A rule asks about each of them.
cargo {run r rustdoc miri llvm-cov tarpaulin expand asm hack insta watch make xtask leptos tauri ndk zigbuild \
  package vendor fix} :: lax -p= --package= --config=code --manifest-path=project --target-dir=write -Z= -x=run \
  -s=run +execute
# After `--` come options of rustfmt, and names of files.
cargo fmt :: -[qvh] --check:skip --all -p= --package= --manifest-path=project --message-format= --quiet --verbose \
  @write *formatted
# Their operands are packages, of which what is known here is shown.
cargo {tree metadata version pkgid locate-project verify-project read-manifest help --list} :: <cargo> -[di] -e= -i? \
  -f= --edges= --invert? --prune= --depth= --prefix= --no-dedupe --duplicates --charset= --format= \
  --filter-platform= --no-deps --format-version= --workspace --message-format= *skip @read
# They build the workspace to look at it. A rule asks about each of them.
cargo {udeps machete geiger bloat} :: lax --config=code --manifest-path=project --target-dir=write +execute *skip \
  @read
# They ask a registry; a rule asks.
cargo {search info deny audit outdated} :: lax --registry= --index=send --config=code +network +egress *skip @read
# They change what the project depends on; a rule asks.
cargo {add update fetch generate-lockfile remove rm new init upgrade} :: lax --config=code +network +install +write \
  *skip
# A rule asks in any case, so its options need no list.
cargo {install binstall uninstall} :: lax --config=code +network +install +execute *skip
# A rule asks in any case, so its options need no list.
cargo {publish login logout owner yank} :: lax --config=code +network +egress +secret *skip
# Its operands are packages; a rule asks about every deletion.
cargo clean :: lax --config=code --target-dir=delete --manifest-path=project @delete *skip
cargo :: -[vq] --config=code -C=project -Z=code --color= --manifest-path=project --locked --offline --frozen \
  --verbose --quiet --list
# They show which toolchains are installed.
rustup {show which doc} :: -[v] --verbose --toolchain= --path *skip
# A rule asks in any case, so its options need no list.
rustup :: lax +network +install +execute
go {build test vet} :: -[avxnicmhw] -o=write -exec=program -toolexec=program -vettool=program -modfile=read \
  -overlay=code -pkgdir=write -ldflags=flags -gcflags=flags -asmflags=flags -gccgoflags=flags -compiler=code \
  -coverprofile=write -cpuprofile=write -memprofile=write -blockprofile=write -mutexprofile=write -trace=write \
  -outputdir=write -test.coverprofile=write -test.cpuprofile=write -test.memprofile=write -test.trace=write \
  -test.outputdir=write -test.testlogfile=write -test.gocoverdir=write -run= -skip= -bench= -count= -timeout= -tags= \
  -p= -parallel= -mod= -covermode= -coverpkg= -benchtime= -benchmem -cpu= -list= -fuzz=!write -fuzztime= \
  -fuzzminimizetime= -shuffle= -vet= -json -race -msan -asan -short -failfast -fullpath -cover -work -trimpath \
  -buildvcs= -buildmode= -installsuffix= -linkshared -modcacherw -pgo= -blockprofilerate= -memprofilerate= \
  -mutexprofilefraction= -artifacts -test.v -test.run= -C=project -args -printf= -shadow -composites= -unsafeptr= \
  -structtag= onedash +execute
# They run programs of the workspace, or what its comments name. A rule asks about each of them.
go {run generate tool bug fix telemetry work} :: lax -exec=program -toolexec=program -modfile=read -overlay=read \
  -o=write onedash +execute
# Its operands are packages of the workspace.
go fmt :: -[nx] -mod= *formatted @write onedash
# Their operands are packages, names and settings, which they print.
go {list version env doc help}, go mod {graph why verify} :: -[muenxvacs] -f= -json? -test -deps -find -compiled \
  -export -tags= -versions -retracted -reuse= -all -cmd -src -short -short -w!write,?environment \
  -u!write,?environment -toolexec=program -modfile=read -mod= -vendor -changed -go= -ex -http!network onedash *skip \
  @read
# They change what the module depends on; a rule asks.
go {get install}, go mod {tidy download vendor init edit} :: lax -modfile=read -toolexec=program onedash +network \
  +install +write *skip
# A rule asks about every deletion.
go clean :: lax onedash @delete *skip
golangci-lint run, golangci-lint :: -[vhnjEDet] -c=project --config=project --fix:edit --no-config --timeout= --fast \
  --fast-only --enable= --disable= --enable-only= --enable-all --disable-all -E= -D= -j= -e= --new --new-from-rev= \
  --new-from-merge-base= --new-from-patch=read --issues-exit-code= --build-tags= --tests? --verbose --color= \
  --max-issues-per-linter= --max-same-issues= --out-format=lintformat --print-issued-lines? --print-linter-name? \
  --sort-results --show-stats? --modules-download-mode= --allow-parallel-runners --concurrency= --exclude= \
  --skip-dirs= --skip-files= --path-prefix= --presets= --go= --default= --path-mode= --cpu-profile-path=write \
  --mem-profile-path=write --trace-path=write --output.text.path=write --output.json.path=write --uniq-by-line? \
  +execute
# Their operands are names of linters and settings.
golangci-lint {version linters help}, golangci-lint config path, golangci-lint cache status :: -[vhc] \
  --config=project --format= --json --debug --short --enable= --disable= +execute *skip
# A rule asks about what it writes or runs, so its options need no list.
golangci-lint {fmt migrate custom}, golangci-lint cache clean :: lax +write +execute
staticcheck, revive, errcheck, ineffassign, gosec :: -[hvlbq] --fix:edit -fix:edit -c=project -config=project \
  -checks= -tags= -f= -formatter= -tests= -go= -fail= -explain= -matrix -merge -show-ignored -exclude= -ignore= \
  -ignoretests -ignoregenerated -asserts -blank -abspath -exclude-only -excludeonly -mod= -verbose -max_open_files= \
  -set_exit_status -fmt= -out=write -o=write -conf=project -severity= -confidence= -include= -exclude-dir= \
  -exclude-generated -quiet -no-fail -nosec -sort -stdout -concurrency= -color= -track-suppressions -terse -r \
  onedash +execute
# They debug, watch, generate or ask a database. A rule asks about each of them.
govulncheck, dlv, air, ginkgo, gotestsum, mockgen, wire, sqlc, templ :: lax +execute
dotnet {build test format} :: -[vhdf] -o=write -c= -f= -r= -v= -l=dotnetlogger -s=read -p=code -bl?write \
  --output=write --configuration= --framework= --runtime= --verbosity= --logger=dotnetlogger --filter= --no-build \
  --no-restore --no-incremental --nologo --results-directory=write --collect= --settings=project --blame \
  --list-tests --verify-no-changes --severity= --include= --exclude= --diag=write --test-adapter-path=program \
  --self-contained? --no-self-contained --no-dependencies --include-generated --report=write +execute
# They run, publish, watch or clean. A rule asks about each of them.
dotnet {run clean watch publish msbuild vstest ef} :: lax -o=write +execute
# A rule asks in any case, so its options need no list.
dotnet {restore add tool new workload remove} :: lax +network +install +execute
# A rule asks in any case, so its options need no list.
dotnet nuget :: lax +network +egress +execute
# They list what is installed, and projects of a solution.
dotnet {--info --list-sdks --list-runtimes list}, dotnet sln list :: -[vh] --verbosity= --format= \
  --include-transitive --framework= *skip
# A rule asks about what it writes or runs, so its options need no list.
dotnet sln :: lax +write
swift {build test} :: -[vqchj] -c= -j= --configuration= --target= --product= --filter= --skip= --parallel \
  --num-workers= --enable-code-coverage --list-tests --show-bin-path --build-tests --verbose --very-verbose --quiet \
  --sanitize= --skip-build --disable-sandbox!privilege --scratch-path=write --build-path=write --cache-path=write \
  --package-path=project --xunit-output=write -Xcc=code -Xswiftc=code -Xlinker=code -Xcxx=code +execute
# They run or rewrite. A rule asks about each of them.
swift {run format} :: lax +execute
# A rule asks in any case, so its options need no list.
swift package :: lax +network +install +execute
# Unclear in any case, so its options need no list.
xcodebuild, xcrun, flutter, dart, mix, iex, elixir, rebar3, stack, cabal, opam, dune, lake, lean, coqc, agda, \
  idris2, raco, racket, guile, sbcl, clojure, clj, bb, octave, matlab, gnuplot, R, stata, sas :: lax +execute +?code
jest :: -[tbiuwoehfvclon] -t= -w= -c=project -i -b? --testNamePattern= --testPathPattern= --testPathPatterns= \
  --testPathIgnorePatterns= --config=project --rootDir=project --roots= --coverage? --collectCoverage? \
  --collectCoverageFrom= --coverageDirectory=write --coverageReporters= --coverageProvider= --ci --watch --watchAll? \
  --runInBand --maxWorkers= --verbose? --silent? --bail? --json --outputFile=write --updateSnapshot --onlyChanged \
  --onlyFailures --lastCommit --changedSince= --findRelatedTests --runTestsByPath --passWithNoTests --forceExit \
  --detectOpenHandles --detectLeaks --logHeapUsage --listTests --showConfig --no-cache --cache? --clearCache \
  --colors --no-colors --color --noStackTrace --expand --errorOnDeprecated --testTimeout= --shard= --selectProjects= \
  --ignoreProjects= --projects= --maxConcurrency= --workerThreads --env=project --testEnvironment=project \
  --reporters=project --setupFiles=project --setupFilesAfterEnv=project --globalSetup=project \
  --globalTeardown=project --runner=project --testRunner=project --transform=project --resolver=project \
  --preset=project --testSequencer=project --testResultsProcessor=project --filter=project --cacheDirectory=write \
  --moduleNameMapper= --debug --nonFlagArgs= --no-watchman --watchman --useStderr --randomize --seed= --notify \
  --openHandlesTimeout= --injectGlobals? --coverageThreshold= --no-coverage +execute
vitest :: -[tuwrhvc] -c=project -t= -r=project -u --run --watch? --config=project --root=project --dir= --project= \
  --testNamePattern= --coverage? --coverage.enabled? --coverage.reporter= --coverage.provider=project \
  --coverage.include= --coverage.exclude= --coverage.reportsDirectory=write --reporter=vitestreporter \
  --outputFile=write --outputJson=write --outputFile.json=write --outputFile.junit=write --outputFile.html=write \
  --environment=project --globals --silent? --bail? --retry= --pool= --maxWorkers= --minWorkers= --no-threads \
  --threads? --no-file-parallelism --fileParallelism? --no-isolate --isolate? --dom --mode= --update \
  --passWithNoTests --allowOnly? --logHeapUsage --hideSkippedTests --changed? --shard= --testTimeout= --hookTimeout= \
  --no-color --color --typecheck? --typecheck.only --typecheck.tsconfig=read --clearScreen? --no-clearScreen --run \
  --includeTaskLocation --segfaultRetry= --exclude= --sequence.shuffle? --sequence.seed= \
  --poolOptions.threads.singleThread? --singleThread --workspace=project --globalSetup=project --compare=read \
  --ui!execute,?unknown-option --api?!network --browser?!execute,?unknown-option --inspect?!network \
  --inspect-brk?!network --standalone --merge-reports?read --no-coverage --disable-console-intercept --expand \
  --diff= --slow-test-threshold= --teardownTimeout= --maxConcurrency= --no-watch +execute
mocha, ava, jasmine, karma, tsd :: -[wgfibctvsdAaCREh] -t= -g= -f= -s= -j= -R=project -r=project -c=project -u= \
  --require=project --import=project --loader=project --config=project --package=read --reporter=project --ui= \
  --timeout= --grep= --fgrep= --invert --bail --recursive --exit --watch --watch-files= --watch-ignore= --slow= \
  --retries= --parallel --jobs= --forbid-only --forbid-pending --color --no-color --colors --no-colors --diff \
  --inline-diffs --full-trace --check-leaks --allow-uncaught --async-only --delay --dry-run --fail-zero --ignore= \
  --exclude= --extension= --file=project --sort --spec= --reporter-option=reporteroption \
  --reporter-options=reporteroption -O=reporteroption --match= --verbose --fail-fast --serial --concurrency= --tap \
  --update-snapshots --no-worker-threads --node-arguments=code --random= --seed= --single-run --no-single-run \
  --browsers= --reporters= --log-level= --typings= --files= --show-diff +execute
tsc, vue-tsc, svelte-check :: -[pbwdhv] -p=read -b -w -t= -m= --project=read --build --watch --noEmit --noemit \
  --emitDeclarationOnly --declaration --declarationMap --declarationDir=write --outDir=write --outdir=write \
  --outFile=write --rootDir= --rootDirs= --tsBuildInfoFile=write --generateTrace=write --generateCpuProfile=write \
  --skipLibCheck? --strict? --target= --module= --moduleResolution= --lib= --jsx= --types= --typeRoots=read \
  --pretty? --incremental? --composite? --force --clean --dry --verbose --listFiles --listFilesOnly --showConfig \
  --init!write --traceResolution --extendedDiagnostics --diagnostics --esModuleInterop? --allowJs? --checkJs? \
  --resolveJsonModule? --isolatedModules? --sourceMap? --inlineSourceMap? --removeComments? --noImplicitAny? \
  --strictNullChecks? --noUnusedLocals? --noUnusedParameters? --noErrorTruncation --preserveWatchOutput \
  --explainFiles --locale= --baseUrl= --downlevelIteration? --experimentalDecorators? \
  --allowSyntheticDefaultImports? --forceConsistentCasingInFileNames? --noImplicitReturns? \
  --noFallthroughCasesInSwitch? --newLine= --stopBuildOnErrors --tsconfig=read --workspace=project --output= \
  --threshold= --fail-on-warnings --ignore= --no-tsconfig --compiler-warnings= --diagnostic-sources= --all +execute \
  *object
eslint :: -[cvh] -c=project --config=project --ext= --fix --fix-dry-run --fix-type= --max-warnings= --quiet --cache \
  --cache-file=write --cache-location=write --cache-strategy= --format=project -f=program -o=write \
  --output-file=write --ignore-path=read --ignore-pattern= --no-ignore --no-eslintrc --no-config-lookup --env= \
  --global= --rule= --rulesdir=project --plugin=project --parser=project --parser-options= \
  --resolve-plugins-relative-to=project --report-unused-disable-directives \
  --report-unused-disable-directives-severity= --color --no-color --stdin --stdin-filename= \
  --no-error-on-unmatched-pattern --exit-on-fatal-error --print-config= --debug --init!install --no-inline-config \
  --no-warn-ignored --pass-on-no-patterns --stats --flag= --env-info --inspect-config!network,install \
  --suppress-all!write --suppress-rule=!write --suppressions-location=write --prune-suppressions!write \
  --concurrency= +execute
stylelint, xo, tslint, oxlint :: -[cpqftsh] -c=project --config=project -f=program --formatter=project \
  --format=project -o=write --output-file=write --out=write --fix? --fix-suggestions --fix-dangerously --cache \
  --cache-location=write --ignore-path=read --ignore-pattern= --quiet --max-warnings= --custom-syntax=project \
  --custom-formatter=project --config-basedir=project --color --no-color --stdin --stdin-filename= \
  --allow-empty-input --print-config --report-needless-disables --project=read --rules-dir=project -r=project \
  --exclude= --type-check --deny-warnings -D= -A= -W= --deny= --allow= --warn= --tsconfig=read --import-plugin \
  --react-plugin --jest-plugin --silent --threads= --prettier --space? --semicolon? --env= --global= --ignore= \
  --plugin=project --parser=project --type-aware --rules +execute
# Each does one task that its first operand names; `effects.routine_commands` says which tasks build.
playwright, next, nuxt, vite, astro, ng, nx, biome, rails :: -[cghwluxjdevnqprR] -c=project -g= -p= -m= -l= -j= -w= \
  --config=project --grep= --grep-invert= --project= --reporter=project --workers= --headed --debug --timeout= \
  --retries= --repeat-each= --max-failures= --shard= --list --update-snapshots --output=write --outDir=write \
  --output-path=write --outputPath=write --mode= --base= --target= --minify? --sourcemap? --ssr? --manifest? \
  --emptyOutDir --watch --logLevel= --clearScreen? --force --profile --no-lint --turbo --turbopack --webpack --dir= \
  --fix --quiet --max-warnings= --configuration= --prod --no-progress --progress? --browsers= --code-coverage \
  --source-map? --include= --exclude= --all --parallel= --skip-nx-cache --skipNxCache --verbose --nxBail --projects= \
  --write --unsafe --apply --apply-unsafe --staged --changed --since= --colors= --diagnostic-level= \
  --max-diagnostics= --files-ignore-unknown= --no-errors-on-unmatched --reporter-file=write --config-path=project \
  --formatter-enabled= --linter-enabled= --organize-imports-enabled= --site= --silent --root=project --no-open \
  --only-changed? --last-failed --fully-parallel --forbid-only --trace= --quiet --pass-with-no-tests \
  --ignore-snapshots --seed= --backtrace --name= --strict --experimental-app-only --experimental-build-mode= \
  --no-mangling +execute
rollup :: -[mhv] -c?project --config?project -i= -o=write -d=write -f= -n= -e= -g= -p=code -w!execute,?unknown-option \
  --input= --file=write --dir=write --format= --name= --external= --globals= --sourcemap? --silent --plugin=code \
  --configPlugin=code --environment=!?environment --bundleConfigAsCjs --failAfterWarnings --logLevel= --perf \
  --treeshake? --no-treeshake --no-strict --watch!execute,?unknown-option +execute *project
# Its first operand is the task: `effects.routine_commands` says which ones build.
webpack :: -[hv] -c=project -m= -o=write -d= -t= --config=project --config-name= --mode= --env= --output-path=write \
  --entry=project --devtool= --target= --stats? --color --no-color --progress? --profile --json=write --merge \
  --node-env= --fail-on-warnings --no-devtool -w!execute,?unknown-option --watch!execute,?unknown-option \
  --analyze!execute,?unknown-option +execute
tsup :: -[h] -d=write --out-dir=write --outDir=write --config=project --format= --dts? --dts-only --dts-resolve \
  --minify? --clean --target= --sourcemap? --external= --splitting --no-splitting --treeshake? --global-name= \
  --platform= --silent --legacy-output --tsconfig=read --no-config --watch!execute,?unknown-option \
  --onSuccess=code --on-success=code +execute *project
c8, nyc :: -r= -o=write -n= -x= -c=project -s --reporter= --report-dir=write --reports-dir=write \
  --temp-directory=write --temp-dir=write --check-coverage --lines= --functions= --branches= --statements= --all \
  --src= --exclude= --include= --per-file --skip-full --clean --no-clean --config=project --cwd=project \
  --require=project --silent --exclude-after-remap --extension= --cache? --no-cache --nycrc-path=project posix *command
uvu :: -[bcqth] -r=project -C=project -i= --require=project --cwd=project --ignore= --bail --quiet --color --tsmodule \
  +execute *project
standard :: -[hv] --fix --global= --plugin=project --env= --parser=project --ext= --verbose --cwd=project --stdin \
  +execute *project
# Their operands are names of scripts in `package.json`; `effects.routine_commands` says which ones build.
run-s, run-p, npm-run-all :: -[cnslpr] --continue-on-error --print-label --print-name --silent --parallel --serial \
  --sequential --race --aggregate-output --max-parallel= --npm-path=program +execute *skip
# They serve, watch, bundle, migrate, publish or generate. A rule asks about each of them.
tap, cypress, wdio, nightwatch, testcafe, knip, depcheck, madge, size-limit, commitlint, \
  lint-staged, esbuild, parcel, swc, babel, remix, gatsby, vue, svelte-kit, ember, turbo, \
  lerna, rush, gulp, grunt, storybook, typedoc, jsdoc, api-extractor, changeset, release-it, semantic-release, \
  nodemon, concurrently, wait-on, serve, http-server, json-server, \
  live-server, prisma, drizzle-kit, knex, sequelize, typeorm, graphql-codegen, openapi-generator, orval, expo, \
  react-native, metro, electron, electron-builder, tauri, cap, ionic, quasar, docusaurus, vitepress, vuepress, \
  eleventy, hexo :: lax -o=write +execute
prettier :: -[luwcih] -w:edit --write:edit -c:read --check:read -l:read --list-different:read --config=project \
  --plugin=project --plugin-search-dir=project --ignore-path=read --parser= --tab-width= --print-width= --use-tabs \
  --no-semi --semi --single-quote --jsx-single-quote --quote-props= --trailing-comma= --bracket-spacing \
  --no-bracket-spacing --bracket-same-line --arrow-parens= --prose-wrap= --end-of-line= \
  --html-whitespace-sensitivity= --vue-indent-script-and-style --embedded-language-formatting= \
  --single-attribute-per-line --ignore-unknown --no-error-on-unmatched-pattern --log-level= --loglevel= --cache \
  --cache-location=write --cache-strategy= --stdin-filepath= --no-config --no-editorconfig --color --no-color \
  --config-precedence= --with-node-modules --require-pragma --insert-pragma --find-config-path= --file-info= \
  --support-info --debug-check --experimental-ternaries --object-wrap= --experimental-operator-position= \
  --check-ignore-pragma +execute *read
rspec, rubocop, minitest, phpunit, phpstan, psalm, phpcs, pest :: -[fbcepdnvqwxaAODslghiSE] --require=project \
  -r=project -I=project -c=project -f= -e= -t= -o=write -d=code -n= -s= -P= -p= --out=write --format= --example= \
  --tag= --pattern= --color --no-color --colour --profile? --fail-fast? --no-fail-fast --order= --seed= --dry-run \
  --only-failures --next-failure --backtrace --warnings --bisect? --config=project --configuration=project \
  --autoload-file=project --bootstrap=project --filter= --testsuite= --group= --exclude-group= --stop-on-failure \
  --stop-on-error --testdox --verbose --debug --no-coverage --colors? --display-deprecations --display-warnings \
  --display-notices --parallel --processes= --auto-correct --autocorrect --autocorrect-all --auto-correct-all \
  --only= --except= --lint --parallel --no-parallel --cache? --display-cop-names --fail-level= --force-exclusion \
  --auto-gen-config!write --level= --memory-limit= --no-progress --error-format= --generate-baseline=write --xdebug \
  --no-cache --show-info? --threads= --standard= --extensions= --ignore= --report= --report-file=write --sniffs= \
  --log-junit=write --coverage-html=write --coverage-text?write --coverage-clover=write --coverage-xml=write \
  --coverage-php=write --coverage-cobertura=write --testdox-html=write --testdox-text=write --log-teamcity=write \
  --cache-directory=write --cache-result-file=write --teamcity --no-configuration --include-path=project \
  --set-baseline=write --output-format= --stats --no-diff --ansi --no-ansi +execute
# They serve, migrate, rewrite or generate. A rule asks about each of them.
jekyll, cucumber, brakeman, reek, sorbet, srb, steep, solargraph, yard, phpcbf, php-cs-fixer, artisan, symfony, \
  drush, wp, pint, rector, deptrac, infection :: lax --require=project -r=project +execute
hyperfine :: -[Nih] -w= -r= -m= -M= -n= -L== -P== -u= -s= --warmup= --runs= --min-runs= --max-runs= --command-name= \
  --export-json=write --export-markdown=write --export-csv=write --export-asciidoc=write --export-orgmode=write \
  -p=run --prepare=run --cleanup=run --conclude=run -c=run --setup=run --parameter-list== --ignore-failure \
  --show-output --style= --time-unit= --sort= --output=write --input=read --reference=run -S=program --shell=program \
  *run
# Unclear in any case, so its options need no list.
watchexec, watchman, wrk, ab, hey, k6, vegeta, siege, oha :: lax +execute +network +?unknown-program
# Their operands are names of chains, records and files of Aver's own formats, which Aver shows or verifies.
aver {verify show log doctor sessions status} :: -n= --deep --level= --key=read --require-pq --since= --until= \
  --checkpoint=read --strict --json --watch --every= --whole-every= --keep-going --metrics=write \
  --metrics-port=!network --section= --raw --full --html=write --force --type= --kind= --session= --reverse \
  --unfinished --follow --tool= --no-verify --project=read --setup-sql --roles-sql --ledger=!?unknown-target \
  --tenant= *skip
# Their operands are names of chains and rules.
aver export, aver checkpoint, aver gate {check report}, aver policy {show check test explain} :: -o=write \
  --out=write --svg=write --with-meta --no-blobs --force --json --strict --git=edit --commit!write \
  --close=!agent-config --sweep --staged --wait= --diff=read --command= --type= --tool= --arg= --args= --file= \
  --description= --caller= --for= --session= --workspace=read --ledger=!?unknown-target --tenant= *skip
# Everything else that Aver does by command changes what is asked about; a rule asks.
aver {approvals install uninstall policy gate config keys hook approve} :: lax +agent-config
aver :: --ledger=!?unknown-target --tenant=
# Unclear in any case, so its options need no list.
ollama, llm, aider, claude, codex, gemini, cursor, cursor-agent, goose, amp, opencode, sgpt, mods, cline :: lax \
  +execute +network +egress +agent-config +?unknown-program
"""
TABLE = TABLE.replace("<cargo>", _CARGO)
