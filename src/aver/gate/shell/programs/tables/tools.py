"""Tools that build, check and test. Most of them run the workspace's own code: the effect is `execute`, and clear."""

from __future__ import annotations

TABLE = r"""
pytest, py.test, tox, nox, nosetests, unittest, behave, robot, locust, hypothesis, stestr, pytest-watch, ptw, \
  pre-commit :: -c=read --rootdir=read --junitxml=write --junit-xml=write --basetemp=write --log-file=write -p= -o= \
  -k= -m= -n= +execute
pyright, basedpyright, pyre, pytype, pyrefly, ty :: --python-executable=program --config-file=read \
  --cache-dir=write --junit-xml=write -m= -p= -c= *read .read
mypy, dmypy :: --python-executable=program --config-file=read \
  --cache-dir=write --junit-xml=write --install-types!install --html-report=write -m= -p= -c= +execute *read .read
ruff check :: --fix:edit --fix-only:edit --unsafe-fixes --add-noqa:edit -o=write --output-file=write --config=read \
  --select= --ignore= --extend-select= --output-format= --target-version= --exclude= --cache-dir=write \
  --stdin-filename= --line-length= *read .read
ruff format :: --check:read --diff:read --config=read --line-length= --exclude= --cache-dir=write --stdin-filename= \
  --target-version= *edit .write
ruff {rule linter config version server} :: *skip
ruff clean :: *delete .delete
ruff :: --config=read
black, isort, autopep8, yapf, docformatter, autoflake, pyupgrade, add-trailing-comma, ssort, usort :: --check:read \
  --check-only:read --diff:read -l= -t= -q --line-length= --config=read --settings-path=read --profile= -i -r *edit
flake8, pylint, ansible-lint, sqlfluff, checkov, cppcheck :: --fix:edit -w:edit -i --rcfile=read --config=read \
  -c=read --append-config=read --output-file=write --tee -o=write --init-hook=code --load-plugins=program +execute \
  *read .read
pycodestyle, pydocstyle, pyflakes, bandit, vulture, radon, xenon, codespell, yamllint, shellcheck, \
  hadolint, actionlint, markdownlint, proselint, doc8, darglint, interrogate, detect-secrets, tflint, \
  cfn-lint, cpplint, luacheck, jsonlint, xmlwf, htmlhint, vale, typos, jscpd, \
  lizard, editorconfig-checker, zizmor :: --fix:edit -w:edit -i --rcfile=read --config=read -c=read \
  --output-file=write --tee -o=write --init-hook=code --load-plugins=program *read .read
coverage report :: --rcfile=read -i --include= --omit= +execute *skip @read
coverage {html xml json combine lcov} :: -o=write -d=write --rcfile=read -i --include= --omit= +execute @write *skip
coverage erase :: .delete
coverage run :: -m= --source= --omit= --include= --rcfile=read -p -a --branch --parallel-mode posix +execute *skip
coverage :: --rcfile=read
sphinx-build, mkdocs, pdoc, jupyter, jupyter-nbconvert, nbstripout, papermill, pip-audit, safety, twine, flit, \
  build, cibuildwheel, maturin, scons, waf, invoke, doit, fabric, alembic, django-admin, flask, uvicorn, gunicorn, \
  hypercorn, celery, streamlit, gradio, airflow, dbt, dvc, mlflow, wandb, huggingface-cli, cookiecutter, copier, \
  pyinstaller, nuitka, cython, f2py, py-spy, memray, scalene, kernprof, snakeviz, ipython, bpython, ptpython, pdb, \
  pudb :: +execute +?unknown-option
make, gmake, bmake, remake :: -f=program --file=program --makefile=program -C=project --directory=project -I= \
  --include-dir= -j? -l? -o= -W= --eval=code --jobs? --old-file= --new-file= --load-average? -E=code +execute *makes
cmake :: -S=project -B=write -G= -D= -C=program -P=program -E=cmakes --build=project --install=project --preset= \
  --target= -j? --config= -t= +execute *read
ninja, samu, ctest, cpack, meson, bazel, bazelisk, buck2, pants, gn, autoconf, automake, autoreconf, configure, \
  libtoolize, rake, just, task, mage, earthly, dagger, tilt, skaffold, gradle, gradlew, mvn, mvnw, ant, sbt, lein, \
  mill, boot, bloop, kotlinc, scalac, groovy, kotlin, scala :: -f=program -C=project -j? -t= -k= --file=program \
  --project-dir=project -p? +execute
gcc, g++, cc, c++, clang, clang++, ld, as, tcc, icc, zig, nasm, yasm, nvcc, gfortran, rustc, javac, ghc, ocamlfind, \
  ocamlopt, ocamlc, fpc, dmd, ldc2, crystal, nim, v, odin, swiftc, mcs, csc, fsc, vbc, elm, purs, spago, solc, vyper \
  :: -o=write +execute *read
strip, objcopy, ranlib, install_name_tool, codesign, patchelf, protoc, flatc, thrift, swig, bison, flex, yacc, lex, \
  antlr4, re2c, gperf, ctags, etags, cscope, doxygen, clang-tidy, google-java-format, ktlint, scalafmt, swiftformat, \
  swiftlint, buf, dartfmt, ormolu, fourmolu, nixfmt, alejandra, taplo, dprint, rufo, standardrb :: -o=write +execute \
  *edit
gofmt, goimports, gofumpt, shfmt :: -w:edit -r= -i= -ln= -local= -cpuprofile=write onedash *read
clang-format :: -i:edit --style= --assume-filename= --files=read *read
rustfmt :: --check:read --edition= --config= --config-path=read --emit= *edit
stylua :: --check:read --config-path=read *edit
cargo {build test check run bench clippy doc b t c r d nextest rustc rustdoc miri llvm-cov tarpaulin expand asm hack \
  insta watch make xtask leptos tauri ndk zigbuild package vendor fix} :: -p= --package= --config=code \
  --manifest-path=project --target-dir=write -Z= -x=run -s=run +execute
cargo fmt :: --check:skip --manifest-path=project @write *skip
cargo {tree metadata version pkgid locate-project verify-project read-manifest help --list udeps machete geiger \
  bloat} :: *skip @read
cargo {search info deny audit outdated} :: --registry= --index=send +network +egress *skip @read
cargo {add update fetch generate-lockfile remove rm new init upgrade} :: +network +install +write *skip
cargo {install binstall uninstall} :: +network +install +execute *skip
cargo {publish login logout owner yank} :: +network +egress +secret *skip
cargo clean :: @delete *skip
cargo :: --config=code -C=project -Z= --color= --manifest-path=project
rustup {show which --version doc} :: *skip
rustup :: +network +install +execute
go {build test run vet generate tool bug fix telemetry work} :: -o=write -exec=program -toolexec=program \
  -vettool=program -modfile=read -overlay=read -ldflags=flags -gcflags=flags -gccgoflags=flags \
  -compiler=code -asmflags= -coverprofile=write \
  -cpuprofile=write -memprofile=write -run= -bench= -count= -timeout= -tags= -p= -parallel= -mod= -covermode= \
  -coverpkg= -benchtime= -cpu= -json -v -race -short onedash +execute
go fmt :: *skip @write onedash
go {list version env doc help}, go mod {graph why verify} :: -f= -m -json -w!write,?environment \
  -u!write,?environment -toolexec=program -modfile=read -mod= onedash *skip @read
go {get install}, go mod {tidy download vendor init edit} :: -modfile=read -toolexec=program onedash +network \
  +install +write *skip
go clean :: onedash @delete *skip
golangci-lint, staticcheck, revive, govulncheck, gosec, errcheck, ineffassign, dlv, air, ginkgo, gotestsum, mockgen, \
  wire, sqlc, templ :: --fix:edit -c=read --config=read +execute
dotnet {build test run clean format watch publish msbuild vstest ef} :: -o=write +execute
dotnet {restore add tool new workload remove} :: +network +install +execute
dotnet nuget :: +network +egress +execute
dotnet {--info --list-sdks --list-runtimes sln list} :: *skip
swift {build test run format} :: +execute
swift package :: +network +install +execute
xcodebuild, xcrun, flutter, dart, mix, iex, elixir, rebar3, stack, cabal, opam, dune, lake, lean, coqc, agda, \
  idris2, raco, racket, guile, sbcl, clojure, clj, bb, octave, matlab, gnuplot, R, stata, sas :: +execute +?code
jest, vitest, mocha, ava, tap, jasmine, karma, cypress, playwright, wdio, nightwatch, testcafe, c8, nyc, uvu, tsd, \
  tsc, vue-tsc, svelte-check, eslint, stylelint, xo, standard, tslint, oxlint, biome, knip, depcheck, madge, \
  size-limit, commitlint, lint-staged, webpack, vite, rollup, esbuild, parcel, swc, babel, tsup, next, nuxt, astro, \
  remix, gatsby, ng, vue, svelte-kit, ember, nx, turbo, lerna, rush, gulp, grunt, storybook, typedoc, jsdoc, \
  api-extractor, changeset, release-it, semantic-release, nodemon, concurrently, npm-run-all, run-s, run-p, \
  cross-env, wait-on, serve, http-server, json-server, live-server, prisma, drizzle-kit, knex, sequelize, typeorm, \
  graphql-codegen, openapi-generator, orval, expo, react-native, metro, electron, electron-builder, tauri, cap, \
  ionic, quasar, docusaurus, vitepress, vuepress, eleventy, hexo :: -o=write +execute
prettier :: -w:edit --write:edit -c:read --check:read -l:read --list-different:read --config=program \
  --plugin=program --ignore-path=read --parser= --tab-width= --print-width= +execute *read
rspec, rubocop, rails, jekyll, minitest, cucumber, brakeman, reek, sorbet, srb, steep, solargraph, yard, phpunit, \
  phpstan, psalm, phpcs, phpcbf, php-cs-fixer, pest, artisan, symfony, drush, wp, pint, rector, deptrac, infection \
  :: --require=program -r=program +execute
hyperfine :: -w= -r= -m= -n= --export-json=write --export-markdown=write --export-csv=write -p=run --prepare=run \
  -c=run --setup=run -N -S= *run
watchexec, watchman, wrk, ab, hey, k6, vegeta, siege, oha :: +execute +network +?unknown-program
aver {verify show log doctor export gate policy check checkpoint} :: -o=write --out=write --svg=write \
  --metrics=write --metrics-port=!network --commit!write --close=!agent-config --ledger=!?unknown-target --tenant= *skip
aver approvals, aver policy {init allow forget}, aver gate learn :: +agent-config
aver :: --ledger=!?unknown-target --tenant=
ollama, llm, aider, claude, codex, gemini, cursor, cursor-agent, goose, amp, opencode, sgpt, mods, cline :: +execute \
  +network +egress +agent-config +?unknown-program
"""
