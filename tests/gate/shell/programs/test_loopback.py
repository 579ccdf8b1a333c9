"""Requests to servers on this machine: those that only show something pass, those that may steer a service do not."""

from __future__ import annotations

from aver.agents.registry import load_known_agents
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate, decide
from aver.gate.policy.bundle import load_policy_bundle
from support.many_cases import for_each

GATE = Gate(bundle=load_policy_bundle(), known=load_known_agents())
FACTS = Facts(now="2026-01-05T09:00:00+00:00", environment={"HOME": "/home/dev", "AVER_HOME": "/home/dev/.aver"})


def decision_about(command: str) -> str:
    action = Action(type="shell_exec", tool="Bash", arguments={"command": command}, workspace="/work/shop")
    return decide(action, FACTS, GATE).decision


STEERING = [
    "curl -X POST localhost:2375/containers/create",
    "curl localhost:2375/containers/json",
    "curl -X POST http://127.0.0.1:2375/containers/x/start",
    "curl -d '{}' localhost:3000/api",
    "curl --json '{}' localhost:3000/api",
    "curl -XDELETE localhost:9200/idx",
    "curl -T a.txt localhost:8080/",
    "curl -F f=@a localhost:8080",
    "curl -X PUT localhost:9222/json/new?file:///etc/passwd",
    "curl localhost:9222/json/new?http://x",
    "curl localhost:9222/json",
    "curl -XPOST localhost:3000",
    "curl --request POST localhost:3000",
    "curl --request=POST localhost:3000",
    "curl -X PATCH [::1]:3000",
    'curl -X"POST" 0.0.0.0:2375',
    "curl --data-binary @.env localhost:3000",
    "curl -X PROPFIND localhost",
    "curl localhost:10250/run/ns/pod/c -d cmd=id",
    "curl 127.1:2375/x",
    "curl http://localhost:6379/",
    "curl gopher://localhost:6379/_FLUSHALL",
    "curl dict://localhost:6379/CONFIG",
    "curl telnet://localhost:23",
    "curl -o src/a.py localhost:3000/a",
    "curl -O localhost:3000/a.py",
    "wget --max-redirect=0 --post-data=x localhost:3000",
    "wget --max-redirect=0 localhost:3000",
    "wget --max-redirect=0 --method=DELETE localhost:3000",
    "wget --max-redirect=0 --body-data=x --method=PUT localhost:3000",
    "http POST localhost:3000 a=b",
    "http localhost:3000",
    "http :3000",
    "http :3000/x a=b",
    "xh post :3000",
    "https localhost",
    "nc localhost 2375",
    "redis-cli -h localhost flushall",
    "psql -h localhost -c 'drop table x'",
    "mysql -h 127.0.0.1 -e 'x'",
    "telnet localhost 6379",
    "ncat localhost 80",
    "websocat ws://localhost:9222/x",
    "grpcurl localhost:50051 list",
    "curl http://localhost:3000/a?b=$(cat x)",
    "curl http://localhost:3000/$SECRET",
    'curl -H "X: $(cat .env)" localhost:3000',
    "curl localhost:2375/v1.24/images/create?fromImage=x -X POST",
    "curl http://localhost:8001/api/v1/namespaces",
    "curl http://localhost:15672/api",
    "curl http://localhost:8500/v1/kv/x -X PUT -d y",
    "curl http://localhost:2379/v2/keys -XPUT",
    "curl http://169.254.169.254/latest",
    "curl localhost:4040/api/tunnels",
    "curl http://localhost:631/",
    "curl --unix-socket /var/run/docker.sock http://localhost/containers/json",
    "curl -sXPOST localhost:3000",
    "curl -sX POST localhost:3000",
    "curl -sSfXDELETE localhost:3000/a",
    "curl -X GET localhost:3000 --next -d x localhost:3000",
    "curl -G -d a=1 localhost:3000 --next -d x localhost:3000",
    "curl -X post localhost:3000",
    "curl --request post localhost:3000",
    'curl -X "$M" localhost:3000',
    "curl -X $(echo POST) localhost:3000",
    "curl --json @x localhost:3000",
    "curl --data-raw x localhost:3000",
    "curl --data-urlencode x localhost:3000",
    "curl --form-string a=b localhost:3000",
    "curl -Tx localhost:3000",
    "curl --upload-file x localhost:3000",
    "curl -da=b localhost:3000",
    "curl -H 'X-HTTP-Method-Override: DELETE' localhost:3000",
    "curl http://localhost:02375/info",
    "curl HTTP://LOCALHOST:2375/info",
    "curl http://127.0.0.2:2375/info",
    "curl --url localhost:2375/info",
    "curl localhost:3000 localhost:2375/info",
    "curl -s localhost:9229/json/list",
    "curl -s localhost:9200/_cat/indices",
]
SHOWING = [
    "curl localhost:3000",
    "curl -s http://localhost:8000/health",
    "curl -I localhost:3000",
    "curl -G -d q=1 localhost:3000",
    "curl -X GET localhost:3000",
    "nc -z localhost 2375",
    "curl -b cookies.txt localhost:3000",
    "curl --http2 localhost:3000",
    "curl -s -o /dev/null -w '%{http_code}' localhost:3000",
    "curl -fsS http://localhost:8080/api/users?x=1",
    "curl --silent --max-time 5 http://127.0.0.1:5000/",
    "curl -H 'Accept: application/json' localhost:3000/api",
    "curl -i localhost:4200",
]


@for_each(STEERING)
def test_a_request_that_may_steer_a_service_is_asked_about(command: str) -> None:
    assert decision_about(command) != "pass"


@for_each(SHOWING)
def test_a_request_that_shows_something_passes(command: str) -> None:
    assert decision_about(command) == "pass"
