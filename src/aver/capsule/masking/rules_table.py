# Made from `rules.toml` by `python bench/masking_rules.py`. Do not edit.
# ruff: noqa: E501
# fmt: off
"""The rules of masking as a table: see `rules.toml`."""

from __future__ import annotations

VERSION = 2

BEGINNING_NEEDLES: dict[str, tuple[tuple[str, int], ...]] = {'AK': (('AKIA', 0), ('AKID', 27), ('AKCp', 38)), 'AS': (('ASIA', 0),), 'AB': (('ABIA', 0),), 'AC': (('ACCA', 0),), 'AI': (('AIza', 2),), 'GO': (('GOCSPX-', 2),), 'do': (('doo_v1_', 5), ('dop_v1_', 5), ('dor_v1_', 5)), 'da': (('dapi', 5),), 'ts': (('tskey-', 5),), 'ps': (('pscale_', 5),), 'sb': (('sbp_', 5), ('sb_secret_', 5)), 'HR': (('HRKU-', 5),), 'gh': (('ghp_', 6), ('gho_', 6), ('ghu_', 6), ('ghs_', 6), ('ghr_', 6), ('ghp_', 7), ('gho_', 7), ('ghu_', 7), ('ghs_', 7), ('ghr_', 7)), 'gi': (('github_pat_', 6),), 'gl': (('glpat-', 8), ('gldt-', 8), ('glrt-', 8), ('glrtr-', 8), ('glcbt-', 8), ('glptt-', 8), ('glft-', 8), ('glffct-', 8), ('glimt-', 8), ('glsoat-', 8), ('glagent-', 8), ('gloas-', 8), ('glsa_', 17)), 'AT': (('ATBB', 9), ('ATATT3', 9), ('ATCTT3', 9), ('ATTA', 9)), 'xo': (('xox', 10),), 'xa': (('xapp-', 10), ('xai-', 13), ('xau_', 27)), 'sk': (('sk-ant-', 13), ('sk-proj-', 13), ('sk-svcacct-', 13), ('sk-or-', 13), ('sk-lf-', 13), ('sk-', 14), ('sk_live_', 15), ('sk_test_', 15), ('sk_', 34), ('sk_org_', 35)), 'gs': (('gsk_', 13),), 'hf': (('hf_', 13),), 'r8': (('r8_', 13),), 'pp': (('pplx-', 13),), 'nv': (('nvapi-', 13),), 'ls': (('lsv2_', 13),), 'rk': (('rk_live_', 15), ('rk_test_', 15)), 'sq': (('sq0atp-', 15), ('sq0csp-', 15), ('sqp_', 39), ('squ_', 39), ('sqa_', 39)), 'sh': (('shpat_', 15), ('shpca_', 15), ('shppa_', 15), ('shpss_', 15), ('shippo_', 39)), 'np': (('npm_', 16),), 'py': (('pypi-', 16), ('pylf_v', 39)), 'ru': (('rubygems_', 16),), 'dc': (('dckr_pat_', 16), ('dckr_oat_', 16)), 'oy': (('oy2', 16),), 'ci': (('cio', 16),), 'ke': (('key-', 17),), 'SK': (('SK', 17),), 'li': (('lin_api_', 17), ('live_', 37), ('lin_oauth_', 39)), 'nt': (('ntn_', 17),), 'se': (('secret_', 17),), 'NR': (('NRAK-', 17), ('NRJS-', 39), ('NRAL-', 39), ('NRII-', 39)), 'sn': (('sntrys_', 17), ('sntryu_', 17)), 'fi': (('figd_', 17), ('fio-u-', 39)), 'PM': (('PMAK-', 17),), 'AG': (('AGE-SECRET-KEY-1', 18),), 'LT': (('LTAI', 27),), 'pu': (('pul-', 27),), 'nf': (('nfp_', 27),), 'rn': (('rnd_', 27),), 'fo': (('fo1_', 27),), 've': (('vercel_blob_rw_', 27),), 'na': (('napi_', 27),), 'dd': (('ddp_', 27), ('ddo_', 27)), 'A3': (('A3-', 30),), 'tg': (('tgp_v1_', 34),), 'fw': (('fw_', 34),), 'ji': (('jina_', 34),), 'tv': (('tvly-', 34),), 'cs': (('csk-', 34),), 'es': (('esecret_', 34),), 'cr': (('crsr_', 34),), 'ph': (('phx_', 34),), 'pc': (('pcsk_', 34),), 'ap': (('api_org_', 34), ('apify_api_', 39), ('api-', 39)), 'EA': (('EAAA', 35), ('EAA', 39)), 'FL': (('FLWSECK', 35),), 'rz': (('rzp_live_', 35), ('rzp_test_', 35)), 'pd': (('pdl_live_', 35), ('pdl_sdbx_', 35)), 'po': (('polar_pat_', 35), ('polar_oat_', 35)), 'ac': (('access-sandbox-', 36), ('access-development-', 36), ('access-production-', 36)), 'te': (('test_', 37),), 'CL': (('CLOJARS_', 38),), 'cm': (('cmVmdGtu', 38),), 'xk': (('xkeysib-', 39),), 'xs': (('xsmtpsib-', 39),), 'CF': (('CFPAT-', 39),), 'du': (('duffel_', 39),), 'EZ': (('EZAK', 39), ('EZTK', 39)), 'IG': (('IGQ', 39),), 'os': (('os_v2_', 39),), 'pn': (('pnu_', 39),), 'rd': (('rdme_', 39),), 'tk': (('tk-us-', 39),), 'sm': (('sm_aat_', 39),), 'sg': (('sgp_', 39),), 'tf': (('tfp_', 39),), 'AQ': (('AQVN', 39),), 'y0': (('y0_', 39),), 'zp': (('zpka_', 39),), 'bk': (('bkua_', 39),), 'CC': (('CCIPAT_', 39),), 'p8': (('p8e-', 39),), 'ic': (('ico-', 39),), 'AP': (('API-', 39),), 'wa': (('waka_', 39),), 'io': (('ion_', 39),), 're': (('re_', 39),), 'pa': (('pat-na', 39), ('pat-eu', 39), ('pat-ap', 39), ('pat', 43)), 'sd': (('sdk-', 39),), 'mo': (('mob-', 39),), 'BB': (('BBFF-', 39),), 'ro': (('rootly_', 39),), 'sa': (('samsara_api_', 39),)}
INNER_NEEDLES: tuple[tuple[str, int], ...] = (('AZDO', 29), ('_mmk', 40), ('-us', 41))
LEADING_NEEDLES: tuple[tuple[str, int], ...] = (('amzn.mws.', 1), ('ya29.', 2), ('1//0', 2), ('.atlasv1.', 4), ('hvs.', 5), ('hvb.', 5), ('hvr.', 5), ('dp.pt.', 5), ('dp.st.', 5), ('dp.ct.', 5), ('dp.sa.', 5), ('dp.scim.', 5), ('dp.audit.', 5), ('SG.', 17), ('sha256~', 27), ('v1.0-', 28), ('sk.eyJ', 44), ('sl.', 45), ('sl.u.', 45), ('oauth:', 46))
TEXT_NEEDLES: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = (
    ('K', (('ABSK', 0),)),
    ('~', (('Q~', 3),)),
    ('G', (('GR1348941', 8),)),
    ('A', ((':AA', 12),)),
    ('$', (('access_token$produc', 15), ('$1$', 47), ('$5$', 47), ('$6$', 47), ('$7$', 47), ('$y$', 47), ('$gy$', 47), ('$apr1$', 47), ('$2a$', 47), ('$2b$', 47), ('$2x$', 47), ('$2y$', 47), ('$argon2', 47))),
    ('J', (('eyJ', 19), ('ops_eyJ', 27), ('glc_eyJ', 39))),
    ('O', (('dG9rO', 39),)),
    ('*', ((':*:', 48),)),
    ('.com/', (('hooks.slack.com/services/', 10), ('discord.com/api/webhooks/', 11), ('discordapp.com/api/webhooks/', 11), ('hooks.slack.com/workflows/', 31), ('hooks.slack.com/triggers/', 31), ('.webhook.office.com/webhookb2/', 32), ('hooks.zapier.com/hooks/catch/', 33))),
    ('fm', (('fm1_', 27), ('fm2_', 27), ('fm1r_', 27), ('fm1a_', 27))),
    ('43', ((':5432:', 48), (':5433:', 48), (':6432:', 48))),
    ('whsec_', (('whsec_', 15),)),
    ('snyk_', (('snyk_', 39),)),
    ('dt0', (('dt0', 42),)),
)

WORD_NEEDLES: tuple[tuple[str, tuple[tuple[str, int], ...]], ...] = (
    ('=', (('sig=', 24), ('signature=', 24), ('code=', 50))),
    ('-token', (('private-token', 52), ('x-auth-token', 52), ('x-vault-token', 52), ('x-amz-security-token', 52), ('x-access-token', 52))),
    ('-key', (('x-api-key', 52), ('x-goog-api-key', 52), ('ocp-apim-subscription-key', 52))),
    ('auth', (('authorization', 22), ('auth', 51))),
    ('identified', (('identified', 49),)),
    ('password', (('password', 49),)),
    ('cookie', (('cookie', 23),)),
    ('bearer', (('bearer', 20),)),
    ('login', (('login', 25),)),
    ('basic', (('basic', 21),)),
    ('curl', (('curl', 26),)),
)

TOKENS: tuple[tuple[str, tuple[str, ...], str, str, str, int], ...] = (
    ('aws-key', ('AKIA', 'ASIA', 'ABIA', 'ACCA', 'ABSK'), '(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9_-])|ABSK[A-Za-z0-9+/]{100,}+=?=?', 'key', '', 0),
    ('aws-key', ('amzn.mws.',), 'amzn\\.mws\\.[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'key', '', 0),
    ('google-key', ('AIza', 'ya29.', 'GOCSPX-', '1//0'), 'AIza[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])|ya29\\.[A-Za-z0-9_-]{20,}+|GOCSPX-[A-Za-z0-9_-]{24,}+|1//0[A-Za-z0-9_-]{30,}+', 'key', '', 0),
    ('azure-key', ('Q~',), '[A-Za-z0-9_~.-]{3}[0-9]Q~[A-Za-z0-9_~.-]{31,34}', 'key', '', 4),
    ('cloud-token', ('.atlasv1.',), '[A-Za-z0-9]{14}\\.atlasv1\\.[A-Za-z0-9_-]{60,}+', 'key', '', 14),
    ('cloud-token', ('doo_v1_', 'dop_v1_', 'dor_v1_', 'dapi', 'hvs.', 'hvb.', 'hvr.', 'dp.pt.', 'dp.st.', 'dp.ct.', 'dp.sa.', 'dp.scim.', 'dp.audit.', 'tskey-', 'pscale_', 'sbp_', 'sb_secret_', 'HRKU-'), 'do[opr]_v1_[a-f0-9]{64}|dapi[a-f0-9]{32}|hv[sbr]\\.[A-Za-z0-9_-]{24,}+|dp\\.(?:pt|st|ct|sa|scim|audit)\\.[A-Za-z0-9]{40,}+|tskey-[a-z]{1,20}-[A-Za-z0-9-]{16,}+|pscale_(?:tkn|pw|oauth)_[A-Za-z0-9_-]{32,}+|sbp_[a-f0-9]{40}|sb_secret_[A-Za-z0-9_-]{20,}+|HRKU-[A-Za-z0-9_-]{36,}+', 'key', '', 0),
    ('github-token', ('ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_', 'github_pat_'), 'gh[pousr]_[A-Za-z0-9]{36,}+|github_pat_[A-Za-z0-9_]{22,}+', 'key', '', 0),
    ('github-token', ('ghp_', 'gho_', 'ghu_', 'ghs_', 'ghr_'), 'gh[pousr]_[A-Za-z0-9]{12,35}+', 'key', 'random', 0),
    ('gitlab-token', ('glpat-', 'gldt-', 'glrt-', 'glrtr-', 'glcbt-', 'glptt-', 'glft-', 'glffct-', 'glimt-', 'glsoat-', 'glagent-', 'gloas-', 'GR1348941'), 'gl(?:pat|dt|rtr|rt|cbt|ptt|ffct|ft|imt|soat|agent|oas)-[A-Za-z0-9_-]{20,}+|GR1348941[A-Za-z0-9_-]{20,}+', 'key', '', 0),
    ('atlassian-token', ('ATBB', 'ATATT3', 'ATCTT3', 'ATTA'), 'ATBB[A-Za-z0-9]{28,}+|AT[AC]TT3[A-Za-z0-9_-]{50,}+=?[A-Z0-9]{0,16}|ATTA[A-Za-z0-9]{60,}+', 'key', '', 0),
    ('slack-token', ('xox', 'xapp-', 'hooks.slack.com/services/'), 'xox[abeoprs](?:\\.xox[bp])?-[A-Za-z0-9-]{10,}+|xapp-[0-9]-[A-Za-z0-9-]{20,}+|hooks\\.slack\\.com/services/(?P<secret>[A-Za-z0-9/]{20,}+)', 'key', '', 0),
    ('discord-token', ('discord.com/api/webhooks/', 'discordapp.com/api/webhooks/'), 'discord(?:app)?\\.com/api/webhooks/[0-9]{1,24}/(?P<secret>[A-Za-z0-9_-]{30,}+)', 'key', '', 0),
    ('telegram-token', (':AA',), '(?<=[0-9]{8}):AA[A-Za-z0-9_-]{33}(?![A-Za-z0-9_-])', 'text', '', 0),
    ('llm-key', ('sk-ant-', 'sk-proj-', 'sk-svcacct-', 'sk-or-', 'sk-lf-', 'gsk_', 'hf_', 'r8_', 'xai-', 'pplx-', 'nvapi-', 'lsv2_'), 'sk-(?:ant|proj|svcacct|or|lf)-[A-Za-z0-9_-]{20,}+|gsk_[A-Za-z0-9]{40,}+|hf_[A-Za-z0-9]{30,}+|r8_[A-Za-z0-9]{37}|xai-[A-Za-z0-9]{40,}+|pplx-[A-Za-z0-9]{40,}+|nvapi-[A-Za-z0-9_-]{40,}+|lsv2_(?:pt|sk)_[a-f0-9]{32}_[a-f0-9]{10}', 'key', 'digit', 0),
    ('llm-key', ('sk-',), 'sk-[A-Za-z0-9_-]{20,}+', 'key', 'random', 0),
    ('payment-key', ('sk_live_', 'sk_test_', 'rk_live_', 'rk_test_', 'whsec_', 'sq0atp-', 'sq0csp-', 'shpat_', 'shpca_', 'shppa_', 'shpss_', 'access_token$produc'), '[sr]k_(?:live|test)_[A-Za-z0-9]{16,}+|whsec_[A-Za-z0-9+/]{24,}+=?=?|sq0(?:atp|csp)-[A-Za-z0-9_-]{22,}+|shp(?:at|ca|pa|ss)_[A-Fa-f0-9]{32}|access_token\\$production\\$[a-z0-9]{16}\\$[a-f0-9]{32}', 'key', '', 0),
    ('registry-token', ('npm_', 'pypi-', 'rubygems_', 'dckr_pat_', 'dckr_oat_', 'oy2', 'cio'), 'npm_[A-Za-z0-9]{36}(?![A-Za-z0-9_-])|pypi-[A-Za-z0-9_-]{50,}+|rubygems_[a-f0-9]{48}|dckr_[po]at_[A-Za-z0-9_-]{27,}+|oy2[a-z0-9]{43}(?![A-Za-z0-9_-])|cio[A-Za-z0-9]{32}(?![A-Za-z0-9_-])', 'key', 'digit', 0),
    ('service-key', ('SG.', 'key-', 'SK', 'lin_api_', 'ntn_', 'secret_', 'NRAK-', 'glsa_', 'sntrys_', 'sntryu_', 'figd_', 'PMAK-'), 'SG\\.[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{32,64}(?![A-Za-z0-9_-])|key-[a-f0-9]{32}(?![A-Za-z0-9_-])|SK[a-f0-9]{32}(?![A-Za-z0-9_-])|lin_api_[A-Za-z0-9]{40}|ntn_[A-Za-z0-9]{40,}+|secret_[A-Za-z0-9]{43}|NRAK-[A-Z0-9]{27}|glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}|sntry[su]_[A-Za-z0-9_-]{40,}+=?=?|figd_[A-Za-z0-9_-]{40,}+|PMAK-[a-f0-9]{24}-[a-f0-9]{34}', 'key', 'digit', 0),
    ('age-key', ('AGE-SECRET-KEY-1',), 'AGE-SECRET-KEY-1[A-Z0-9]{50,}+', 'key', '', 0),
    ('jwt', ('eyJ',), 'eyJ[A-Za-z0-9_-]{8,}+\\.eyJ[A-Za-z0-9_-]{8,}+\\.[A-Za-z0-9_-]{8,}+', 'key', '', 0),
    ('bearer', ('bearer',), 'bearer(?:\\s|%20|\\+|\\\\){1,24}+(?P<secret>[A-Za-z0-9._~+/-]{12,}+=*+)', 'word', 'digit', 0),
    ('basic-credentials', ('basic',), 'basic\\s{1,4}+(?P<secret>[A-Za-z0-9+/]{6,}+={0,2})', 'word', 'basic', 0),
    ('authorization', ('authorization',), 'authorization\\\\{0,4}[\\"\']?\\s{0,4}[:=]\\s{0,16}+\\\\{0,4}[\\"\']?\\s{0,16}+(?:(?P<scheme>[a-z][a-z0-9-]{0,31}+)[\\s\\\\]{1,24}+)?(?P<secret>[^\\s\\"\',\\\\]{6,}+)', 'word', 'header', 0),
    ('cookie', ('cookie',), 'cookie2?\\\\{0,4}[\\"\']?\\s{0,4}:\\s{0,4}\\\\{0,4}[\\"\']?(?P<secret>[a-z0-9_.!#%&*+^|~-]{1,128}+=[^\\r\\n\\"\'\\\\]{2,}+)', 'word', '', 0),
    ('signed-url', ('sig=', 'signature='), '(?:sig|signature)=(?P<secret>[A-Za-z0-9%+/_=-]{40,}+)', 'word', '', 0),
    ('netrc', ('login',), 'login\\s{1,8}+\\S{1,128}+\\s{1,8}+password\\s{1,8}+(?P<secret>\\S++)', 'word', 'value', 0),
    ('command-credentials', ('curl',), 'curl [^\\n]{0,120}?(?:-u|--user)[ =]?[\\"\']?[^\\s:\\"\'$]{1,64}+:(?P<secret>[^\\s\\"\'@]{1,256}+)', 'word', 'value', 0),
    ('cloud-token', ('LTAI', 'AKID', 'pul-', 'nfp_', 'rnd_', 'sha256~', 'fo1_', 'fm1_', 'fm2_', 'fm1r_', 'fm1a_', 'ops_eyJ', 'vercel_blob_rw_', 'napi_', 'ddp_', 'ddo_', 'xau_'), 'LTAI[A-Za-z0-9]{16,26}(?![A-Za-z0-9_-])|AKID[A-Za-z0-9]{32}(?![A-Za-z0-9_-])|pul-[a-f0-9]{40}(?![A-Za-z0-9_-])|nfp_[A-Za-z0-9]{36}|rnd_[A-Za-z0-9]{24,}+|sha256~[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])|fo1_[A-Za-z0-9_-]{43}|fm(?:1[ar]?|2)_[A-Za-z0-9+/=_,-]{60,}+|ops_eyJ[A-Za-z0-9+/]{200,}+={0,3}|vercel_blob_rw_[A-Za-z0-9_]{30,}+|napi_[a-z0-9]{40,}+|dd[op]_[A-Za-z0-9]{36}(?![A-Za-z0-9_-])|xau_[A-Za-z0-9]{40,}+', 'key', 'digit', 0),
    ('cloud-token', ('v1.0-',), 'v1\\.0-[a-f0-9]{24}-[a-f0-9]{100,}+', 'key', '', 0),
    ('azure-key', ('AZDO',), '[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9_-])', 'key', '', 76),
    ('service-key', ('A3-',), 'A3-[A-Z0-9]{6}-(?:[A-Z0-9]{11}|[A-Z0-9]{6}-[A-Z0-9]{5})-[A-Z0-9]{5}-[A-Z0-9]{5}-[A-Z0-9]{5}(?![A-Za-z0-9_-])', 'key', '', 0),
    ('slack-token', ('hooks.slack.com/workflows/', 'hooks.slack.com/triggers/'), 'hooks\\.slack\\.com/(?:workflows|triggers)/(?P<secret>[A-Za-z0-9/]{20,}+)', 'key', '', 0),
    ('service-key', ('.webhook.office.com/webhookb2/',), '\\.webhook\\.office\\.com/webhookb2/(?P<secret>[A-Za-z0-9@/-]{40,}+)', 'text', '', 0),
    ('service-key', ('hooks.zapier.com/hooks/catch/',), 'hooks\\.zapier\\.com/hooks/catch/(?P<secret>[A-Za-z0-9/]{8,}+)', 'key', '', 0),
    ('llm-key', ('tgp_v1_', 'fw_', 'jina_', 'tvly-', 'csk-', 'esecret_', 'crsr_', 'phx_', 'pcsk_', 'api_org_', 'sk_'), 'tgp_v1_[A-Za-z0-9_-]{40,}+|fw_[A-Za-z0-9]{22,}+|jina_[A-Za-z0-9_-]{40,}+|tvly-[A-Za-z0-9-]{20,}+|csk-[a-z0-9]{40,}+|esecret_[A-Za-z0-9]{20,}+|crsr_[a-f0-9]{60,}+|phx_[A-Za-z0-9]{40,}+|pcsk_[A-Za-z0-9_]{40,}+|api_org_[A-Za-z0-9]{34}(?![A-Za-z0-9_-])|sk_[a-f0-9]{48}(?![A-Za-z0-9_-])', 'key', 'digit', 0),
    ('payment-key', ('sk_org_', 'EAAA', 'FLWSECK', 'rzp_live_', 'rzp_test_', 'pdl_live_', 'pdl_sdbx_', 'polar_pat_', 'polar_oat_'), 'sk_org_[A-Za-z0-9_]{20,}+|EAAA[A-Za-z0-9_-]{56,64}(?![A-Za-z0-9_-])|FLWSECK(?:_TEST)?-[A-Za-z0-9]{12,}+-X|rzp_(?:live|test)_[A-Za-z0-9]{14,}+|pdl_(?:live|sdbx)_[A-Za-z0-9_]{30,}+|polar_(?:p|o)at_[A-Za-z0-9_]{30,}+', 'key', 'digit', 0),
    ('payment-key', ('access-sandbox-', 'access-development-', 'access-production-'), 'access-(?:sandbox|development|production)-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}', 'key', '', 0),
    ('payment-key', ('live_', 'test_'), '(?:live|test)_[A-Za-z0-9]{30,40}+(?![A-Za-z0-9_-])', 'key', 'random', 0),
    ('registry-token', ('CLOJARS_', 'cmVmdGtu', 'AKCp'), 'CLOJARS_[a-z0-9]{60}|cmVmdGtu[A-Za-z0-9]{50,}+|AKCp[A-Za-z0-9]{60,}+', 'key', 'digit', 0),
    ('service-key', ('xkeysib-', 'xsmtpsib-', 'lin_oauth_', 'NRJS-', 'NRAL-', 'NRII-', 'glc_eyJ', 'CFPAT-', 'duffel_', 'EZAK', 'EZTK', 'fio-u-', 'EAA', 'IGQ', 'dG9rO', 'os_v2_', 'pnu_', 'rdme_', 'tk-us-', 'sm_aat_', 'shippo_', 'sqp_', 'squ_', 'sqa_', 'sgp_', 'tfp_', 'AQVN', 'y0_', 'zpka_', 'bkua_', 'CCIPAT_', 'p8e-', 'ico-', 'API-', 'waka_', 'apify_api_', 'ion_', 'pylf_v', 're_', 'pat-na', 'pat-eu', 'pat-ap', 'sdk-', 'api-', 'mob-', 'BBFF-', 'snyk_', 'rootly_', 'samsara_api_'), 'x(?:key|smtp)sib-[a-f0-9]{64}-[A-Za-z0-9]{16}|lin_oauth_[a-f0-9]{40,}+|NRJS-[a-f0-9]{19}(?![A-Za-z0-9_-])|NR(?:AL|II)-[A-Za-z0-9_-]{27,}+|glc_eyJ[A-Za-z0-9+/]{40,}+={0,2}|CFPAT-[A-Za-z0-9_-]{43}(?![A-Za-z0-9_-])|duffel_(?:live|test)_[A-Za-z0-9_-]{40,}+|EZ[AT]K[A-Za-z0-9]{54}(?![A-Za-z0-9_-])|fio-u-[A-Za-z0-9_-]{60,}+|EAA[A-Za-z0-9]{90,}+|IGQ[A-Za-z0-9_-]{80,}+|dG9rO[A-Za-z0-9+/]{50,}+={0,2}|os_v2_(?:app|org)_[a-z0-9]{60,}+|pnu_[a-z0-9]{36}(?![A-Za-z0-9_-])|rdme_[a-z0-9]{60,}+|tk-us-[A-Za-z0-9_-]{48}(?![A-Za-z0-9_-])|sm_aat_[A-Za-z0-9]{16,}+|shippo_(?:live|test)_[a-f0-9]{40}|sq[apu]_[a-f0-9]{40}(?![A-Za-z0-9_-])|sgp_(?:[a-f0-9]{16}_|local_)?[a-f0-9]{40}(?![A-Za-z0-9_-])|tfp_[A-Za-z0-9_]{40,}+|AQVN[A-Za-z0-9_-]{35,38}(?![A-Za-z0-9_-])|y0_[A-Za-z0-9_-]{50,}+|zpka_[A-Za-z0-9_]{40,}+|bkua_[a-z0-9]{40}(?![A-Za-z0-9_-])|CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}|p8e-[A-Za-z0-9]{32}(?![A-Za-z0-9_-])|ico-[A-Za-z0-9]{32}(?![A-Za-z0-9_-])|API-[A-Z0-9]{26}(?![A-Za-z0-9_-])|waka_[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|apify_api_[A-Za-z0-9]{36}|ion_[A-Za-z0-9]{42}(?![A-Za-z0-9_-])|pylf_v[0-9]_[a-z]{2}_[A-Za-z0-9]{30,}+|re_[A-Za-z0-9]{8}_[A-Za-z0-9]{24}(?![A-Za-z0-9_-])|pat-(?:na|eu|ap)[0-9]-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|(?:sdk|api|mob)-[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}(?![A-Za-z0-9_-])|BBFF-[A-Za-z0-9]{30,}+|snyk_[a-z]{3}\\.[A-Za-z0-9._-]{40,}+|rootly_[a-f0-9]{60,}+|samsara_api_[A-Za-z0-9]{28,}+', 'key', 'digit', 0),
    ('service-key', ('_mmk',), '[A-Za-z0-9]{6}_[A-Za-z0-9]{29}_mmk(?![A-Za-z0-9_-])', 'key', '', 36),
    ('service-key', ('-us',), '[a-f0-9]{32}-us[0-9]{1,2}(?![A-Za-z0-9_-])', 'key', '', 32),
    ('service-key', ('dt0',), 'dt0[a-z][0-9]{2}\\.[A-Z0-9]{24}\\.[A-Z0-9]{64}', 'key', '', 0),
    ('service-key', ('pat',), 'pat[A-Za-z0-9]{14}\\.[a-f0-9]{64}(?![A-Za-z0-9_-])', 'key', '', 0),
    ('service-key', ('sk.eyJ',), 'sk\\.eyJ[A-Za-z0-9_-]{20,}+\\.[A-Za-z0-9_-]{16,}+', 'key', '', 0),
    ('service-key', ('sl.', 'sl.u.'), 'sl\\.(?:u\\.)?[A-Za-z0-9_-]{120,}+', 'key', '', 0),
    ('service-key', ('oauth:',), 'oauth:(?P<secret>[a-z0-9]{30})(?![A-Za-z0-9_-])', 'key', 'digit', 0),
    ('password-hash', ('$1$', '$5$', '$6$', '$7$', '$y$', '$gy$', '$apr1$', '$2a$', '$2b$', '$2x$', '$2y$', '$argon2'), '\\$2[abxy]\\$[0-9]{2}\\$[./A-Za-z0-9]{53}|\\$(?:1|5|6|7|y|gy|apr1)\\$(?:[./A-Za-z0-9=]{1,64}\\$){1,2}[./A-Za-z0-9]{20,}+|\\$argon2(?:id|i|d)\\$[A-Za-z0-9=,+/$]{40,}+', 'text', '', 0),
    ('command-credentials', (':5432:', ':5433:', ':6432:', ':*:'), ':(?:5432|5433|6432|\\*):[^\\s:]{1,64}+:[^\\s:]{1,64}+:(?P<secret>[^\\s:\\"\']{1,256}+)', 'text', 'value', 0),
    ('sql-password', ('identified', 'password'), '(?:identified\\s{1,4}+(?:with\\s{1,4}+[a-z0-9_\'\\"]{1,64}+\\s{1,4}+)?(?:by|as)\\s{1,4}+(?:password\\s{1,4}+)?|password\\s{1,4}+e?|password\\s?=\\s?password\\()[\'\\"](?P<secret>[^\'\\"\\n]{1,256}+)[\'\\"]', 'word', 'value', 0),
    ('oauth-code', ('code=',), '(?<=[?&])code=(?P<secret>[a-z0-9._~%/+-]{10,}+)', 'word', 'digit', 0),
    ('basic-credentials', ('auth',), 'auth\\\\{0,4}[\\"\']\\s{0,8}+:\\s{0,8}+\\\\{0,4}[\\"\'](?P<secret>[A-Za-z0-9+/]{6,}+={0,2})', 'word', 'basic', 0),
    ('authorization', ('x-api-key', 'private-token', 'x-auth-token', 'x-vault-token', 'x-goog-api-key', 'x-amz-security-token', 'x-access-token', 'ocp-apim-subscription-key'), '(?:x-api-key|private-token|x-auth-token|x-vault-token|x-goog-api-key|x-amz-security-token|x-access-token|ocp-apim-subscription-key)\\\\{0,4}[\\"\']?\\s{0,4}:[\\s\\\\]{0,24}+[\\"\']?(?P<secret>[^\\s\\"\',\\\\]{6,}+)', 'word', 'header-value', 0),
)

SHAPES: tuple[tuple[str, str, tuple[int, ...], str, str, str], ...] = (
    ('discord-token', 'MNO', (23, 28), '.', '[MNO][A-Za-z0-9_-]{22,27}\\.[A-Za-z0-9_-]{6,7}\\.[A-Za-z0-9_-]{27,40}(?![A-Za-z0-9_-])', 'discord'),
    ('private-key', '5KL', (51, 52), '', '[5KL][1-9A-HJ-NP-Za-km-z]{50,51}(?![A-Za-z0-9_-])', 'base58check'),
)

COMMANDS: tuple[tuple[tuple[str, ...], tuple[str, ...], str, bool], ...] = (
    (('mysql', 'mysqldump', 'mysqladmin', 'mysqlimport', 'mysqlshow', 'mysqlcheck', 'mariadb', 'mariadb-dump', 'mariadb-admin'), ('-p',), '(?<!\\S)-p(?=[^\\s-])(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('sshpass', 'mongo', 'mongosh', 'mongodump', 'mongorestore', 'mongoexport', 'mongoimport'), ('-p',), '(?<!\\S)-p[ =]{0,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('login',), ('-p',), '(?<!\\S)-p[ =]{0,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('redis-cli',), ('-a', '--'), '(?<!\\S)(?:-a|--pass)[ =]{1,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('ldapsearch', 'ldapadd', 'ldapmodify', 'ldapdelete', 'ldappasswd', 'ldapwhoami'), ('-w', '-s'), '(?<!\\S)-[ws]\\s{1,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('sqlcmd', 'bcp', 'osql', 'zip', 'unzip', 'mosquitto_pub', 'mosquitto_sub'), ('-P',), '(?<!\\S)-P\\s{0,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('7z', '7za', '7zr', 'rar', 'unrar'), ('-p', '-h'), '(?<!\\S)-h?p(?=[^\\s-])(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('openssl',), ('-k', '-K', '-p'), '(?<!\\S)(?:-k|-K|-passwd)\\s{1,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('openssl',), ('pass:',), '\\bpass:(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('htpasswd',), ('htpasswd',), '(?<!\\S)-[a-zA-Z]{0,6}b[a-zA-Z]{0,6}\\s(?:\\S{1,256}+\\s{1,8}+){1,4}+(?<=\\s)(?P<c>[^\\s\\"\']{1,256}+)', False),
    (('nmcli',), ('nmcli',), '(?<!\\S)(?:password|[a-z0-9-]{1,32}\\.(?:psk|password|wep-key0))\\s{1,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('keytool', 'jarsigner', 'apksigner'), ('pass',), '(?<!\\S)--?(?:storepass|keypass|srcstorepass|deststorepass|srckeypass|destkeypass|ks-pass|key-pass)\\s{1,4}(?:pass:)?(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('smbclient', 'rpcclient', 'smbmap', 'mount.cifs'), ('-U',), '(?<!\\S)-U\\s{0,4}[\\"\']?[^\\s%\\"\']{1,64}%(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('curl',), ('-b', '--'), '(?<!\\S)(?:-b|--cookie)[ =]{0,4}[\\"\']?(?P<c>[A-Za-z0-9_.-]{1,64}+=[^\\"\'\\s]{2,512}+)', False),
    (('http', 'https', 'xh'), ('-a', '--'), '(?<!\\S)(?:-a|--auth)[ =]{0,4}[\\"\']?[^\\s:\\"\'$]{1,64}+:(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('aws', 'npm', 'yarn', 'pnpm', 'gcloud', 'git', 'pip', 'poetry', 'composer', 'az'), ('config',), '(?<!\\S)config(?:ure)?\\s{1,4}+(?:--profile\\s{1,4}+\\S{1,64}+\\s{1,4}+)?(?:--?[a-z-]{1,32}+\\s{1,4}+){0,3}+(?:set\\s{1,4}+)?[^\\s=]{0,64}?(?:secret|token|password|passwd|_auth|access_key)[a-zA-Z_-]{0,32}+\\s{1,4}+(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('vault',), ('login',), '(?<!\\S)login\\s{1,4}+(?:-[a-z-]{1,32}+(?:=\\S{1,128}+)?\\s{1,4}+){0,4}+(?![a-z]{1,32}=)(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('kubectl', 'oc'), ('--from-literal',), '--from-literal[= ][\\"\']?[^\\s=\\"\']{1,128}=(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('wpa_passphrase',), ('wpa_passphrase',), 'wpa_passphrase\\s{1,4}(?:\\"[^\\"\\n]{1,64}\\"|\'[^\'\\n]{1,64}\'|\\S{1,64}+)\\s{1,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('chpasswd',), ('chpasswd',), '(?:^|[\\s\\"\'])[a-z_][a-z0-9_-]{0,31}+:(?P<c>[^\\s\\"\'|]{1,256}+)(?=[\\"\']?\\s{0,4}+\\|[^|\\n]{0,64}?chpasswd)', True),
    (('xfreerdp', 'wfreerdp', 'rdesktop'), ('/p:', '-p'), '(?<!\\S)(?:/p:|-p\\s{1,4})(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
    (('impacket-psexec', 'psexec.py', 'secretsdump.py', 'evil-winrm', 'winexe', 'cyberark', 'crackmapexec', 'nxc'), ('-p',), '(?<!\\S)-p\\s{1,4}(?:\\$?\'(?P<a>[^\'\\n]{1,256}+)\'|"(?P<b>[^"\\n]{1,256}+)"|(?P<c>[^\\s"\'|;&<>()]{1,256}+))', False),
)

SECRET: tuple[str, ...] = ('password', 'passwords', 'passwd', 'passwds', 'passphrase', 'passphrases', 'passcode', 'passcodes', 'pwd', 'pswd', 'secret', 'secrets', 'token', 'credential', 'credentials', 'authorization', 'connection_string', 'connectionstring', 'secret_key_base', 'secretkeybase', 'passkey', 'mnemonic', 'seed_phrase', 'seedphrase', 'recovery_phrase', 'secret_phrase', 'seed_words')
KEY: tuple[str, ...] = ('api', 'access', 'secret', 'private', 'signing', 'encryption', 'decryption', 'master', 'account', 'shared', 'auth', 'license', 'licence', 'jwt', 'hmac', 'subscription', 'consumer', 'webhook', 'deploy', 'wif')
PASS_AFTER: tuple[str, ...] = ('db', 'database', 'smtp', 'mail', 'email', 'imap', 'user', 'root', 'admin', 'become', 'sudo', 'su', 'ssh', 'ftp', 'sftp', 'http', 'https', 'proxy', 'auth', 'login', 'my', 'mysql', 'pg', 'postgres', 'redis', 'mongo', 'rabbitmq', 'amqp', 'ldap', 'bind', 'key', 'store', 'keystore', 'truststore', 'vault', 'wifi', 'wpa', 'account', 'service', 'app', 'client', 'server', 'api', 'repo', 'registry', 'docker', 'git', 'ansible', 'default', 'sa', 'sql', 'mssql', 'oracle', 'unix', 'os', 'host', 'router', 'enable', 'rcon', 'basic', 'jenkins', 'sonar', 'nexus', 'artifactory')
TOKENS_AFTER: tuple[str, ...] = ('access', 'refresh', 'auth', 'api', 'bearer', 'session', 'secret', 'bot', 'deploy', 'personal')
PLAIN_KEYS: tuple[str, ...] = ('public', 'pub', 'primary', 'foreign', 'cache', 'sort', 'partition', 'idempotency', 'unique', 'map', 'ctrl', 'meta', 'alt', 'shift', 'hot', 'arrow', 'enter', 'tab', 'esc', 'escape', 'storage', 'query', 'state', 'route', 'routing', 'object', 's3', 'bucket', 'index', 'row', 'column', 'hash', 'range', 'lookup', 'group', 'config', 'settings', 'setting', 'env', 'dict', 'json', 'header', 'field', 'cookie', 'registry', 'default', 'local', 'name', 'id', 'i18n', 'translation', 'template', 'any', 'event', 'data', 'item', 'entity', 'dedupe', 'shard', 'join', 'left', 'right', 'up', 'down', 'home', 'end', 'kms', 'ssh', 'gpg', 'pgp', 'host', 'authorized', 'known', 'trusted', 'publishable', 'no', 'has', 'is', 'press', 'function', 'f', 'lock', 'redis', 'sql', 'db', 'user', 'session', 'feature', 'metric', 'label', 'annotation', 'tag', 'param', 'parameter', 'property', 'attr', 'attribute', 'file', 'path', 'last')
AFTER: tuple[str, ...] = ('value', 'base64', 'b64', 'hex', 'raw', 'plain', 'text', 'old', 'new', 'prod', 'production', 'staging', 'dev', 'test', 'hash', 'confirm', 'confirmation', 'live', 'current', 'previous')
PLAIN: tuple[str, ...] = ('none', 'null', 'nil', 'undefined', 'true', 'false', 'yes', 'no', 'on', 'off', 'any', 'str', 'string', 'strings', 'bytes', 'int', 'integer', 'number', 'float', 'bool', 'boolean', 'object', 'array', 'list', 'dict', 'buffer', 'text', 'type', 'optional', 'required', 'require', 'requires', 'missing', 'invalid', 'valid', 'empty', 'unset', 'set', 'expired', 'incorrect', 'wrong', 'unknown', 'hidden', 'redacted', 'masked', 'changed', 'reset', 'enabled', 'disabled', 'failed', 'ok', 'error', 'errors', 'default', 'auto', 'prompt', 'env', 'environment', 'is', 'are', 'was', 'must', 'the', 'a', 'an', 'not', 'for', 'to', 'and', 'or', 'if', 'of', 'in', 'this', 'that', 'your', 'with', 'from', 'secretstr', 'bearer', 'basic', 'digest', 'self', 'void', 'file', 'stdin', 'keychain', 'vault', 'below', 'above', 'here', 'see', 'e.g.', 'i.e.', 'placeholder', 'tbd', 'todo', 'n/a', 'secure', 'sensitive', 'write-only')
