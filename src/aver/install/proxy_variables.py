"""The variables by which `aver install --proxy` hands the URL and the headers of a server to `aver proxy`.

They may hold secrets, and every user of a machine can read the command lines of its processes. So only a URL without a
secret in it stands on the command line.

    AVER_PROXY_URL                   the URL, for `aver proxy --http` without one
    AVER_PROXY_HEADER_1              a header: `Authorization: Bearer abc`
    AVER_PROXY_HEADER_VARIABLE_1     a header whose value is in another variable: `X-Key: SHOP_KEY`
    AVER_PROXY_BEARER_VARIABLE       the variable that has the token for `Authorization: Bearer`

`AVER_PROXY_CANARY` makes a proxy answer a test of `aver doctor`, without its server and without the ledger.
"""

URL_VARIABLE = "AVER_PROXY_URL"
HEADER_VARIABLE = "AVER_PROXY_HEADER_"
INDIRECT_VARIABLE = "AVER_PROXY_HEADER_VARIABLE_"
BEARER_VARIABLE = "AVER_PROXY_BEARER_VARIABLE"
CANARY_VARIABLE = "AVER_PROXY_CANARY"
