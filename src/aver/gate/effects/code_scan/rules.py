"""The rules by which Aver finds code that reaches out, by language.

Rules are regular expressions over the text, so they also find words in strings and comments. This error makes Aver ask
more often, not less. Only a scan needs this module: a hook that looks into no code does not load it.
"""

from __future__ import annotations

from collections.abc import Mapping

from aver.gate.effects.code_scan.reach import ReachRule, build_rule

# Every repetition below is bounded, or its characters cannot begin another match: all rules take linear time. A test
# holds them to that.

_ANY_LANGUAGE = (
    # Escapes for letters that need none, many in a row.
    build_rule("hidden", r"\x", r"(?:\\x[2-7][0-9A-Fa-f]){4}"),
    build_rule("hidden", r"\u", r"(?:\\u\{?00[2-7][0-9A-Fa-f]\}?){4}"),
    build_rule("hidden", "\\", r"(?:\\[01][0-7]{2}){4}"),
    build_rule(
        "hidden", "chr fromCharCode", r"\bmap\(\s{0,9}chr\b|\bchr\(\s{0,9}[0-9]{1,7}\s{0,9}\)\s{0,9}\+|fromCharCode"
    ),
    # A text of several hundred characters without a blank is data, and may be code.
    build_rule("hidden", "", r"[A-Za-z0-9+/_-]{200}"),
    build_rule(
        "files",
        ".ssh .aws .gnupg .netrc .bash .zsh .profile .git/ .aver .claude .codex .cursor .env .npmrc .pypirc .kube",
        r"[\"'/~`]\.(?:ssh|aws|gnupg|netrc|bash\w{1,20}|zsh\w{1,20}|profile|git/|aver|claude|codex|cursor|env|npmrc"
        r"|pypirc|kube)(?![\w-])|\.git/(?:hooks|config)",
    ),
    build_rule(
        "files", "~/ /etc/ /proc/ /dev/ id_", r"[\"'`]~/|/etc/|/proc/|/dev/(?:tcp|udp)\b|\bid_(?:rsa|ed25519|ecdsa)\b"
    ),
)

_DECODERS = (
    "b64decode b32decode b16decode b85decode a85decode decodebytes unhexlify fromhex decompress codecs zlib uudecode"
    " a2b_ rot"
)
_OS_CALLS = (
    r"(?:system|popen\w{0,9}|exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?|fork(?:pty)?|startfile|killpg|kill|dup2|putenv)"
)
_PYTHON = (
    build_rule(
        "process",
        "subprocess multiprocessing pexpect ptyprocess plumbum paramiko asyncssh fabric create_subprocess Popen popen"
        " getoutput getstatusoutput webbrowser antigravity pipepager",
        r"\b(?:subprocess|_posixsubprocess|multiprocessing|pexpect|ptyprocess|plumbum|paramiko|asyncssh"
        r"|create_subprocess_\w{1,9}|[Pp]open\w{0,9}|getoutput|getstatusoutput|webbrowser|antigravity|pipepager)\b"
        r"|\b(?:import|from)\s{1,9}fabric\b",
    ),
    build_rule("process", "import from", r"\b(?:import|from)\s{1,9}(?:sh|pty|posix|nt|invoke)\b"),
    build_rule("process", "pty posix", r"\b(?:pty|posix)\s{0,9}\.\s{0,9}\w"),
    build_rule("process", "os", rf"\bos\s{{0,9}}\.\s{{0,9}}{_OS_CALLS}\b"),
    build_rule("process", "os", rf"\bfrom\s{{1,9}}os\s{{1,9}}import\b[^\n]{{0,400}}(?:\b{_OS_CALLS}\b|\*)"),
    build_rule(
        "process",
        "system popen exec spawn fork startfile kill dup2 putenv",
        rf"^[ \t]{{0,40}}{_OS_CALLS}(?:[ \t]{{1,9}}as[ \t]{{1,9}}\w{{1,40}})?[ \t]{{0,9}},?[ \t]{{0,9}}\)?"
        r"[ \t]{0,9}$",
    ),
    # A function of `os` by whatever name the module has. `platform.system()` has no arguments.
    build_rule(
        "process",
        "system popen exec spawn fork",
        r"(?<!platform)\.\s{0,9}(?:system\b(?!\s{0,9}\(\s{0,9}\))|popen\b|exec[lv]p?e?\b|spawn[lv]p?e?\b|posix_spawnp?\b"
        r"|forkpty\b)",
    ),
    build_rule(
        "process",
        "subprocess_ pipe_pager pip setuptools distutils aver",
        r"\bsubprocess_(?:shell|exec)\b|\bpipe_pager\b|^[ \t]{0,40}(?:import|from)\s{1,9}(?:pip|setuptools|distutils)\b"
        r"|\baver\s{0,9}\.\s{0,9}(?:cli|gate|keys|config|hooks|agents)\b",
    ),
    # A module that another one has imported, or that is put into something.
    build_rule(
        "reflection",
        "os sys",
        r"(?<!self)\.\s{0,9}_{0,2}(?:os|sys)\b(?!\s{0,9}\.\s{0,9}path\b)|\b(?:os|sys)\s{1,9}as\b"
        r"|(?:[{:]|\b(?:or|and|else|in|yield)\b)[ \t]{0,9}os[ \t]{0,9}(?:[,)\];}:]|$)"
        r"|(?<![\w.])os[ \t]{1,9}(?:if|or|and)\b"
        r"|^(?![ \t]{0,40}(?:import|from)\b)[^\n]{1,400},[ \t]{0,9}os[ \t]{0,9}(?:[,)\];}]|$)",
    ),
    build_rule(
        "reflection",
        "f_ _frame tb_ currentframe get_objects get_refer modules",
        r"\b(?:f_builtins|f_globals|f_locals|gi_frame|cr_frame|ag_frame|tb_frame|currentframe|get_objects|get_referrers"
        r"|get_referents)\b|\bmodules\s{0,9}(?:\[|\.\s{0,9}get\b)",
    ),
    build_rule(
        "network",
        "create_datagram_endpoint Handler unix_connection",
        r"\bcreate_datagram_endpoint\b|\b(?:HTTP|Socket|Datagram|SMTP|SysLog)Handler\b|\w_unix_connection\b",
    ),
    # The module under another name, or given to a function that finds the rest.
    build_rule(
        "reflection", "os", r"\bimport\s{1,9}os\s{1,9}as\b|(?:=|\(|\[|return)[ \t]{0,9}os[ \t]{0,9}(?:[,)\];]|$)"
    ),
    build_rule("environment", "environ getenv dotenv", r"\b(?:environb?|getenvb?|(?:load_)?dotenv\w{0,9})\b"),
    build_rule(
        "network",
        "socket urllib http ftplib smtplib poplib imaplib nntplib telnetlib xmlrpc urlopen urlretrieve connection"
        " pycurl",
        r"\b(?:_?socket|socketserver|urllib[23]|urllib(?!\s{0,9}\.\s{0,9}parse\b)|httpx|httplib2?|aiohttp|ftplib|smtplib"
        r"|poplib|imaplib|nntplib|telnetlib|xmlrpc\w{0,9}|urlopen|urlretrieve|(?:open|create)_connection|pycurl)\b"
        r"|\bhttp\s{0,9}\.\s{0,9}(?:client|server)\b|\bfrom\s{1,9}http\s{1,9}import\b",
    ),
    build_rule(
        "network",
        "requests websocket boto grpc zmq scapy tornado twisted smtp slack_sdk telegram openai anthropic google azure"
        " kafka pika redis pymongo psycopg dns",
        r"\b(?:import|from)\s{1,9}(?:requests\w{0,20}|websockets?|boto\w{0,9}|grpc\w{0,9}|zmq|scapy|tornado|twisted"
        r"|aiosmtplib|slack_sdk|telegram|openai|anthropic|google|azure|kafka|pika|redis|pymongo|psycopg\w{0,9}|dns)\b"
        r"|\brequests\s{0,9}\.\s{0,9}(?:get|post|put|patch|delete|head|request|[Ss]ession|api|adapters)\b|\bboto3\b",
    ),
    build_rule(
        "code",
        "eval exec compile __import__",
        r"(?<![.\w])(?:eval|exec|execfile|compile)\s{0,9}\(|__import__"
        r"|(?:=|\(|,|\[|@|return)[ \t]{0,9}(?:eval|exec|compile)[ \t]{0,9}(?:[,)\];]|$)",
    ),
    build_rule(
        "code",
        "importlib runpy builtins ickle dill marshal shelve joblib yaml code pdb timeit rofile zipimport customize"
        " Interactive bdb trace",
        r"\bimportlib\b(?!\s{0,9}\.\s{0,9}(?:metadata|resources)\b)|\b(?:runpy|_?_?builtins(?:__)?|_?[cC]?[pP]ickle|dill"
        r"|cloudpickle|marshal|shelve|joblib|zipimport|timeit|sitecustomize|usercustomize|InteractiveInterpreter"
        r"|InteractiveConsole)\b|\byaml\s{0,9}\.\s{0,9}(?:unsafe_|full_)?load(?:_all)?\b|\bcode\s{0,9}\.\s{0,9}interact\b"
        r"|\b(?:pdb|c?[pP]rofile|bdb|trace)\s{0,9}\.\s{0,9}run\w{0,9}\b|\bfrom\s{1,9}code\s{1,9}import\b",
    ),
    build_rule(
        "decoding",
        _DECODERS,
        r"\b(?:standard_|urlsafe_)?(?:b64|b32|b16|b85|a85)decode\b|\b(?:decodebytes|unhexlify|a2b_\w{1,9}|fromhex"
        r"|decompress\w{0,9}|zlib|uudecode)\b|\bcodecs\s{0,9}\.\s{0,9}(?:decode|getdecoder|open)\b|\brot_?13\b",
    ),
    build_rule(
        "native", "ctypes cffi CDLL dlopen LoadLibrary", r"\b(?:_?ctypes\w{0,9}|cffi|CDLL|dlopen|LoadLibrary)\b"
    ),
    build_rule(
        "reflection",
        "globals vars __dict__ __globals__ __subclasses__ __getattribute__ __loader__ __code__ __reduce modules"
        " _getframe CodeType FunctionType attrgetter methodcaller __mro__ __spec__ __bases__ path_hooks meta_path",
        r"(?<![.\w])(?:globals|vars)\s{0,9}\(|__dict__\s{0,9}\[|__(?:globals|subclasses|getattribute|loader|code"
        r"|reduce(?:_ex)?|mro|bases|spec)__|\bsys\s{0,9}\.\s{0,9}(?:modules|_getframe|meta_path|path_hooks)\b"
        r"|\b(?:CodeType|FunctionType)\b"
        r"|\bfrom\s{1,9}sys\s{1,9}import\b[^\n]{0,400}\b(?:modules|_getframe|meta_path|path_hooks)\b"
        r"|\b(?:attrgetter|methodcaller)\s{0,9}\(\s{0,9}(?![\s\"'])",
    ),
    build_rule(
        "reflection",
        "getattr",
        r"(?<![.\w])getattr\s{0,9}\([^,()\n]{1,100}(?:\([^()\n]{0,40}\))?,\s{0,9}(?:(?![\s\"'])|[\"'][^\"'\n]{0,60}"
        r"[\"']\s{0,9}[+%.])|(?:=|\(|,|\[|return)[ \t]{0,9}getattr[ \t]{0,9}(?:[,)\];]|$)",
    ),
    build_rule("files", "expanduser home", r"\bexpanduser\b|\bPath\s{0,9}\.\s{0,9}home\b"),
    build_rule(
        "files",
        "open Path",
        r"\bopen\s{0,9}\(\s{0,9}[rbfu]{0,2}[\"'][^\"'\n]{0,200}[\"']\s{0,9},\s{0,9}(?:mode\s{0,9}=\s{0,9})?[\"'][^\"'\n]{0,3}"
        r"[wax+]|\bPath\s{0,9}\(\s{0,9}[\"'][^\"'\n]{0,200}[\"']\s{0,9}\)\s{0,9}\.\s{0,9}(?:write_|unlink|rename|replace"
        r"|symlink|hardlink|chmod|open|rmdir)",
    ),
)

_JAVASCRIPT = (
    build_rule(
        "process",
        "child_process execa shelljs exec spawn fork cluster worker_threads Deno Bun node-pty zx dlopen inding kill"
        " mainModule",
        r"\b(?:child_process|execa|shelljs|cross-spawn|node-pty|worker_threads)\b|(?<!\.)\b(?:exec|spawn|fork)(?:Sync|File"
        r"|FileSync)?\s{0,9}\(|\b(?:execSync|execFile|spawnSync|execFileSync)\b|\bDeno\s{0,9}\.\s{0,9}(?:run|Command)\b"
        r"|\bBun\s{0,9}\.\s{0,9}(?:spawn\w{0,9}|\$)|[\"'](?:node:)?(?:cluster|zx)[\"']|\bprocess\s{0,9}\.\s{0,9}(?:binding"
        r"|_linkedBinding|dlopen|kill|mainModule)\b",
    ),
    build_rule(
        "network",
        "fetch XMLHttpRequest WebSocket EventSource sendBeacon axios undici got superagent http net tls dgram dns"
        " socket importScripts ws",
        r"\b(?:fetch|got)\s{0,9}\(|\b(?:XMLHttpRequest|WebSocket|EventSource|sendBeacon|axios|undici|superagent"
        r"|importScripts|socket\.io\w{0,20})\b|[\"'](?:node:)?(?:https?|http2|net|tls|dgram|dns|node-fetch|ws)(?:/\w{1,20})?"
        r"[\"']",
    ),
    build_rule(
        "environment",
        "env process",
        r"\bprocess\s{0,9}(?:\?\.|\.)\s{0,9}env\b|\bimport\.meta\.env\b|\b(?:Deno|Bun)\s{0,9}\.\s{0,9}env\b|\bdotenv\b"
        r"|(?:=|\(|,|return)\s{0,9}process\s{0,9}(?:[,;)\]}]|$)|[\"'](?:node:)?process[\"']",
    ),
    build_rule(
        "code",
        "eval Function vm require import constructor setTimeout setInterval module repl inspector createRequire",
        r"\beval\b|\bFunction\s{0,9}\(|[\"'](?:node:)?(?:vm|module|repl|inspector)[\"']|\brequire\s{0,9}\(\s{0,9}(?![\s\"'])"
        r"|\brequire\s{0,9}\(\s{0,9}[\"'][^\"'\n]{0,200}[\"']\s{0,9}\+|\bimport\s{0,9}\(\s{0,9}(?![\s\"'])"
        r"|\.\s{0,9}constructor\s{0,9}[.(\[]|\bcreateRequire\b|\bset(?:Timeout|Interval)\s{0,9}\(\s{0,9}[\"'`]",
    ),
    build_rule(
        "decoding",
        "atob base64 hex unescape inflate gunzip Decompress unzip latin1",
        r"\b(?:atob|unescape)\s{0,9}\(|[\"'](?:base64(?:url)?|hex|latin1)[\"']|\b(?:inflate|gunzip|brotliDecompress|unzip)"
        r"\w{0,9}\b",
    ),
    # A function under another name, and a file that is no code by its name: `require` runs it as code.
    build_rule(
        "network",
        "fetch",
        r"(?:[=(,\[?:|&]|\breturn\b)\s{0,9}fetch\s{0,9}(?:[,;)\]}?|]|$)|(?<![.\w])fetch\s{0,9}(?:\?\.|\.\s{0,9}(?:call|apply|bind)\b)"
        r"|(?<![.\w])fetch[ \t]{1,9}[\"'`]",
    ),
    build_rule(
        "code",
        "require from import constructor",
        r"(?:[=(,\[?:|&]|\breturn\b)\s{0,9}require\s{0,9}(?:[,;)\]}?|]|$)|\brequire\s{0,9}\.\s{0,9}(?:call|apply|bind|main|cache"
        r"|extensions)\b|\bmodule\s{0,9}\.\s{0,9}require\b|[\"'`]constructor[\"'`]"
        r"|\brequire\s{0,9}\(\s{0,9}[\"'][^\"'\n]{0,200}\.(?:txt|md|markdown|rst|log|out|bak|orig|csv|tsv|svg|png|jpe?g|gif|webp"
        r"|ico|pdf|diff|patch|org|tex|adoc)[\"']"
        r"|\b(?:from|import)\s{0,9}\(?\s{0,9}[\"'][^\"'\n]{0,200}\.(?:txt|log|out|bak|orig|csv|tsv|diff|patch|org|tex|adoc|md)[\"']",
    ),
    build_rule("native", "WebAssembly ffi .node", r"\bWebAssembly\b|\bffi(?:-napi)?\b|\.node[\"']"),
    build_rule(
        "reflection",
        "globalThis global window process Reflect this self",
        r"\b(?:globalThis|global|window|process|self)\s{0,9}\[|\bReflect\s{0,9}\.|\bglobalThis\b(?!\s{0,9}\.\w)",
    ),
    build_rule("files", "homedir writeFile rm unlink", r"\bhomedir\b|\bwriteFile(?:Sync)?\s{0,9}\(\s{0,9}[\"']"),
)

_SOURCE = (
    build_rule(
        "process",
        "exec system popen posix_spawn fork Shell CreateProcess Process Runtime Command syscall proc_open passthru"
        " pcntl Open3 Kernel NSTask spawn cmd process open_port Port.open shell",
        r"(?<![\w.>$])(?:system|_?popen|exec[lv]?p?e?|posix_spawnp?|v?fork|spawn|shell_exec|proc_open|passthru)\s{0,9}\("
        r"|\b(?:pcntl_\w{1,20}|ShellExecute\w{0,9}|CreateProcess\w{0,9}|ProcessBuilder|ProcessStartInfo|NSTask|Open3)\b"
        r"|\bRuntime\s{0,9}\.\s{0,9}getRuntime\b|\bProcess(?:\s{0,9}\.\s{0,9}(?:Start|start|run|new|spawn)\b|\s{0,9}\(\s{0,9}\))"
        r"|\b(?:std|tokio|async_std)::process\b|\bCommand::new\b|\"os/exec\"|\bexec\.Command\w{0,9}\b|\bsyscall\b"
        r"|\bIO\.popen\b|\bKernel\.\w|\bio\.popen\b|\bos\.(?:execute|StartProcess)\b|\bSystem\.(?:cmd|shell)\b"
        r"|:os\.cmd\b|\bopen_port\b|\bPort\.open\b",
    ),
    build_rule(
        "network",
        "net http Http HTTP Tcp Udp TCP socket Socket curl URL reqwest hyper ureq open-uri Faraday fsockopen Guzzle LWP"
        " file_get_contents getaddrinfo asio WebClient isahc Unix RestClient",
        r"\"net(?:/http|/rpc|/smtp|/url)?\"|\bnet\.(?:Dial|Listen)\w{0,9}\b|\bhttp\.(?:Get|Post|Head|NewRequest\w{0,20}|Client"
        r"|ListenAndServe\w{0,9})\b|\b(?:std|tokio|async_std)::net\b|\b(?:Tcp|Udp|Unix)(?:Stream|Listener|Socket|Client|Server)"
        r"\b|\b(?:reqwest|hyper|ureq|isahc)\b|\bjava\.net\b|\b(?:HttpClient|HttpURLConnection|OkHttp\w{0,9}|URLSession"
        r"|URLConnection|HttpWebRequest|WebClient|ServerSocket|TCPSocket|UDPSocket)\b|(?<![\w.])[sS]ocket\s{0,9}\("
        r"|\bnew\s{1,9}(?:Socket|URL)\b|\bcurl_\w{1,20}|\bNet::HTTP\b|\bopen-uri\b|\b(?:Faraday|HTTParty|RestClient|LWP)\b"
        r"|\b(?:fsockopen|file_get_contents|getaddrinfo)\b|\bGuzzle\w{0,9}|\basio::|\bIO::Socket\b|\bimport\s{1,9}socket\b",
    ),
    build_rule(
        "environment",
        "env Env ENV ProcessInfo",
        r"\b(?:getenv|secure_getenv|environ)\b|\benv::var\w{0,9}\b|\bstd::env\b|\bSystem\.getenv\b|\bos\.(?:Getenv|Environ"
        r"|LookupEnv|ExpandEnv)\b|\bENV\s{0,9}(?:\[|\.|\{)|\bGetEnvironmentVariables?\b|\bProcessInfo\b|\$_ENV\b|[%$]ENV\b"
        r"|\bSystem\.get_env\b|\boption_env!|\benv!",
    ),
    build_rule(
        "code",
        "eval Marshal unserialize ScriptEngine forName ClassLoader Assembly dlopen LoadLibrary plugin include"
        ' proc_macro cgo go: asm load "C" create_function',
        r"\b(?:instance_|class_|module_)?eval\b|\bMarshal\.load\b|\bunserialize\b|\bScriptEngine\w{0,9}\b|\bClass\.forName\b"
        r"|\b\w{0,20}ClassLoader\b|\bAssembly\.Load\w{0,9}\b|\bdlopen\b|\bLoadLibrary\w{0,9}\b|\bplugin\.Open\b"
        r"|\binclude(?:_str|_bytes)?!|\bproc_macro\b|#cgo\b|^import\s{1,9}\"C\"|//go:(?:generate|linkname|embed)|\b__asm__\b"
        r"|\basm!|\bload(?:string|file)\s{0,9}\(|\bcreate_function\b",
    ),
    build_rule(
        "decoding",
        "base64 Base64 BASE64 inflate unhex DecodeString unpack gunzip gzuncompress zlib",
        r"\b\w{0,20}[bB]ase64\w{0,20}\b|\bBASE64\w{0,9}\b|\b(?:inflate|gzinflate|gzuncompress|unhex|DecodeString|gunzip|zlib)"
        r"\w{0,9}\b|\bunpack\s{0,9}\(",
    ),
)

_OTHER_SOURCES = (
    build_rule("hidden", "000", r"\\u{1,9}000[aAdD]"),
    # Languages whose ways no other one has: Haskell, Clojure, Lisp, Erlang, Nim, D, Zig, Groovy, Scala, Verilog, SQL.
    build_rule(
        "process",
        "Process Command clojure (sh shell- call-process start-process make-process run- system os: exec staticExec"
        " gorge osproc Shell spawn std.process ChildProcess .execute sys.process PROGRAM xp_cmdshell .shell \\!",
        r"\bSystem\.Process\b|\b(?:call|shell|read(?:Create)?|create|spawn)(?:Command|Process)\w{0,20}\b|\bclojure\.java\.shell\b"
        r"|\(sh\s|\b(?:async-)?shell-command\b|\b(?:call|start|make)-process\b|\brun-(?:program|shell-command)\b"
        r"|\(system\*?\s|\bos:cmd\b|\bexecCmd\w{0,9}\b|\bexecProcess\w{0,9}\b|\bstartProcess\b|\bstaticExec\b|\bgorge\w{0,9}\b"
        r"|\bosproc\b|\b(?:execute|spawn|pipe)(?:Shell|Process)\b|\bstd\.process\b|\bChildProcess\b|[\"'\])}]\s{0,9}\.\s{0,9}execute\("
        r"|\bsys\.process\b|\bPROGRAM\s{1,9}'|\bxp_cmdshell\b|^\.(?:shell|system)\b|^\\!|\$system\b",
    ),
    build_rule(
        "process",
        "process exec StartProcess",
        r"\bprocess\s{0,9}::|\bprocess\s{1,9}as\b|[\"`]os/exec[\"`]|\.\s{0,9}StartProcess\b",
    ),
    build_rule(
        "network",
        "net gen_ httpc Network std. toURL openStream openConnection SocketChannel url-retrieve URI httpclient",
        r"\bnet\s{0,9}::|[\"`]net(?:/\w{1,20})?[\"`]|\b(?:gen_tcp|gen_udp|httpc|httpclient)\b|\bNetwork\.\w"
        r"|\bstd\.(?:net|http|socket)\b|\b(?:toURL|openStream|openConnection|SocketChannel|url-retrieve)\b",
    ),
    build_rule(
        "code",
        "## include C nuget load_extension cImport incbin OUTFILE #r",
        r"\w\s{0,9}##\s{0,9}\w|#\s{0,9}include\s{1,9}[\"<][^\">\n]{1,200}\.(?!(?:h|hh|hpp|hxx|inl|inc|c|cc|cpp|cxx|ipp|tpp|def|cuh|cu)"
        r"[\">])\w{1,12}[\">]|^[ \t]{0,40}(?:import[ \t]{1,9})?[\"`]C[\"`][ \t]{0,9};?$|^#r\s{1,9}\"|\bload_extension\b"
        r"|@cImport\b"
        r"|\.incbin\b|\bOUTFILE\b",
    ),
)

_TEXT_ENDINGS = (
    r"(?:txt|md|markdown|rst|log|out|bak|orig|csv|tsv|svg|png|jpe?g|gif|webp|ico|pdf|diff|patch|org|tex|adoc)"
)
_LOADED_TEXTS = (
    # A file that is no code by its name, and is run as code.
    build_rule(
        "code",
        "load require include do source path",
        r"\b(?:load|load-file|require\w{0,9}|include\w{0,9}|do|dofile|source|path)\b[^\n;]{0,120}"
        rf"[\"'./\w]\.{_TEXT_ENDINGS}[\"'\s)\]]",
    ),
)

_SCRIPT = (
    # Calls without brackets, pipes, and functions by their name: Ruby, Perl, Tcl, awk, Lua, R, Julia, PHP.
    build_rule(
        "process",
        "system exec spawn popen fork eval run Cmd getline print open",
        r"(?<![\w.>$:@-])(?:system|exec|spawn|popen)\s{1,9}[\"'$@%\[\w{]|\bsystem2\b|:(?:system|exec|spawn|eval|fork|popen)\b"
        r"|\b(?:run|Cmd)\s{0,9}\(\s{0,9}(?:Cmd\b|\[|`)|\|\s{0,9}getline\b|\bprintf?\b[^\n|]{0,200}\|\s{0,9}\""
        r"|\bopen\b[^\n]{0,200}(?:[\"']\s{0,9}\||\|\s{0,9}[\"'])",
    ),
    build_rule(
        "network",
        "require use",
        r"\brequire\s{1,9}[\"'](?:net/\w|socket|open3|open-uri|pty|fiddle|drb|httparty|faraday|rest-client|webrick)"
        r"|\buse\s{1,9}(?:IO::Socket|Socket|LWP|HTTP::|Net::)",
    ),
    build_rule(
        "reflection",
        "$ = send method",
        r"(?<![>\w])\$\w{1,40}\s{0,9}\(|=\s{0,9}(?:os|io)\s{0,9}(?:[;,]|$)|\b(?:public_|__)?send(?:__)?\s{0,9}\(",
    ),
)

_BACKQUOTES = (build_rule("process", "` %x qx", r"`[^`\n]{1,200}`|%x[\[{(|]|\bqx\s{0,9}[/{(|\[]"),)

RULES_BY_LANGUAGE: Mapping[str, tuple[ReachRule, ...]] = {
    "python": (*_PYTHON, *_ANY_LANGUAGE),
    "javascript": (*_JAVASCRIPT, *_ANY_LANGUAGE),
    "source": (*_SOURCE, *_OTHER_SOURCES, *_LOADED_TEXTS, *_ANY_LANGUAGE),
    "script": (*_SOURCE, *_SCRIPT, *_LOADED_TEXTS, *_BACKQUOTES, *_ANY_LANGUAGE),
}

STRICT_JAVASCRIPT = (
    build_rule("code", "import", r"\bimport\b(?!\s{1,9}[\w{},* ]{1,200}\s{0,9}from\s{0,9}[\"']\.{1,2}/)"),
    build_rule(
        "code",
        "require",
        r"\brequire\b(?!\s{0,9}\(\s{0,9}[\"'](?:\./(?:[\w-]{1,60}/){0,9}[\w-]{1,60}(?:\.(?:js|cjs|json|test|min)){0,2}"
        r"|(?:node:)?(?:path|util|assert|url|events|querystring))[\"']\s{0,9}\))",
    ),
    build_rule(
        "reflection",
        "process global this constructor rototype __proto__ Proxy module Buffer window self exports"
        " arguments OwnProperty",
        r"\b(?:process|global|globalThis|constructor|prototype|__proto__|Proxy|module|Buffer|window|self|exports"
        r"|arguments|[gs]etPrototypeOf|getOwnProperty\w{1,20})\b"
        r"|\bthis\s{0,9}\[",
    ),
    # Names that are put together from pieces, or found in a variable: `f[name]` may be the maker of functions.
    build_rule(
        "reflection",
        "[",
        r"[\w$)\]}]\s{0,9}\[\s{0,9}[A-Za-z_$]|[{,]\s{0,9}\[\s{0,9}[A-Za-z_$][\w$]{0,60}\s{0,9}\]\s{0,9}:",
    ),
    build_rule("reflection", "[ + \\", r"\[\s{0,9}[\"'`(+!\[]|[\"'`]\s{0,9}\+\s{0,9}[\"'`]|\\[xu0-7]"),
    build_rule("network", "://", r"\w{1,12}://"),
    build_rule("files", ". / ~", r"[\"'`](?:/|~|[^\"'`\n]{0,200}\.\./)"),
)
"""Rules for a whole program that a command runs. No test or build of the workspace is known to need them."""
