"""The Helm chart: rendered by Helm, valid for Kubernetes, and consistent in itself and with the code."""

import json
import re
import subprocess
import threading
import tomllib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from deploy.helm.build import MissingHelmError, find
from tests.deploy.commands import options_of, parsed
from tests.hangs import HANG_S

ROOT = Path(__file__).parents[2]
CHART = ROOT / "deploy" / "helm" / "twinsieve"
VALUES = yaml.safe_load((CHART / "values.yaml").read_text("utf-8"))
CONTAINERFILE = (ROOT / "deploy" / "Containerfile").read_text("utf-8")
OLDEST = re.search(r"\d+\.\d+", yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))["kubeVersion"])[0]
NEWEST = ".".join(kubernetes_validate.latest_version().split(".")[:2])
BROKERS = "kafka.bootstrap=kafka-1:9093\\,kafka-2:9094"
ALL = (
    BROKERS,
    "kafka.clientSecret=client",
    "kafka.prefix=news.",
    "serviceMonitor.enabled=true",
    "serviceMonitor.labels.release=prometheus",
    "shards.storage.className=local",
    "image.pullSecrets={registry}",
    "networkPolicy.kafkaPorts={19092}",
    "networkPolicy.kafkaPeers[0].ipBlock.cidr=10.0.0.0/8",
    "nodeSelector.disk=ssd",
    "tolerations[0].operator=Exists",
    "priorityClassName=high",
    "podAnnotations.team=crawl",
    "extraArgs={--log-level,debug}",
    "spaceArgs={--space,tf}",
    "envSecret=storage",
    "networkPolicy.egress[0].ports[0].port=443",
)
NO_SCHEMA = "ServiceMonitor"  # defined by the Prometheus operator, not by Kubernetes

Document = dict[str, Any]
Render = Callable[..., list[Document]]


@pytest.fixture(scope="module")
def helm() -> Path:
    """Helm; where it cannot be built, the tests are skipped and say why."""
    try:
        return find()
    except MissingHelmError as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def render(helm: Path) -> Render:
    """Return the objects that the chart gives with some values, as `--set` takes them."""

    @cache
    def rendered(*values: str, kubernetes: str = NEWEST) -> list[Document]:
        done = run(helm, *values, kubernetes=kubernetes)
        assert done.returncode == 0, done.stderr
        return [document for document in yaml.safe_load_all(done.stdout) if document]

    return rendered


def run(
    helm: Path, *values: str, kubernetes: str = NEWEST, more: Sequence[str] = ()
) -> subprocess.CompletedProcess[str]:
    chosen = [word for value in values for word in ("--set", value)]
    command = [helm, "template", "crawl", CHART, "--kube-version", kubernetes, *more, *chosen]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)


def of_kind(documents: list[Document], *kinds: str) -> dict[str, Document]:
    """Return objects of some kinds by their component."""
    return {
        document["metadata"]["labels"]["app.kubernetes.io/component"]: document
        for document in documents
        if document["kind"] in kinds
    }


def serving(documents: list[Document]) -> dict[str, Document]:
    return of_kind(documents, "Deployment", "StatefulSet")


def pods(documents: list[Document]) -> dict[str, Document]:
    work = of_kind(documents, "Job") | serving(documents)
    return {name: one["spec"]["template"] for name, one in work.items()}


def containers(pod: Document) -> Iterator[Document]:
    return iter(pod["spec"]["containers"])


def options(pod: Document) -> dict[str, str]:
    """Return the options of the pod's command."""
    [container] = pod["spec"]["containers"]
    return options_of(container["args"])


def selects(selector: Document, pod: Document) -> bool:
    return selector["matchLabels"].items() <= pod["metadata"]["labels"].items()


def test_helm_finds_nothing_to_improve(helm: Path) -> None:
    """`helm lint --strict` accepts chart and values."""
    command = [helm, "lint", "--strict", CHART, "--kube-version", NEWEST, "--set", BROKERS]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANG_S, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("kubernetes", [OLDEST, NEWEST])
@pytest.mark.parametrize("values", [(BROKERS,), ALL], ids=["default", "all"])
def test_kubernetes_accepts_every_object(render: Render, values: tuple[str, ...], kubernetes: str) -> None:
    """Each has the schema of its kind, without unknown fields, in the oldest and the newest Kubernetes."""
    for document in render(*values, kubernetes=kubernetes):
        if document["kind"] != NO_SCHEMA:
            kubernetes_validate.validate(document, kubernetes, strict=True)


def test_the_service_monitor_is_left_out_by_default(render: Render) -> None:
    """Kubernetes refuses a kind that it does not know, and the operator may not be installed."""
    assert not of_kind(render(BROKERS), NO_SCHEMA)
    [monitor] = of_kind(render(*ALL), NO_SCHEMA).values()
    [service] = of_kind(render(*ALL), "Service").values()
    assert monitor["spec"]["selector"]["matchLabels"].items() <= service["metadata"]["labels"].items()
    assert service["metadata"]["labels"][monitor["spec"]["jobLabel"]] == "twinsieve"  # the rules select by this job
    assert {end["port"] for end in monitor["spec"]["endpoints"]} <= {port["name"] for port in service["spec"]["ports"]}


@pytest.mark.parametrize("count", [1, 8])
def test_every_shard_has_a_stateful_set(render: Render, count: int) -> None:
    """Their processes have one shard each, counted from 1, and the resolver knows how many there are."""
    documents = render(BROKERS, f"shards.count={count}", "shards.replicas=3")
    sets = {name: work for name, work in of_kind(documents, "StatefulSet").items() if name != "resolver"}
    found = sorted(options(work["spec"]["template"])["--shard"] for work in sets.values())
    assert found == [f"{shard}/{count}" for shard in range(1, count + 1)]
    assert {work["spec"]["replicas"] for work in sets.values()} == {3}
    assert options(pods(documents)["resolver"])["--shards"] == str(count)


def test_kubernetes_refuses_another_number_of_shards(render: Render) -> None:
    """It is in the selectors of shards and resolver, which cannot change, wherever what was rendered is applied."""
    for count in (2, 4):
        documents = render(BROKERS, f"shards.count={count}")
        for name, work in of_kind(documents, "StatefulSet").items():
            assert work["spec"]["selector"]["matchLabels"]["twinsieve/shards"] == str(count), name
        assert "twinsieve/shards" not in serving(documents)["fingerprint"]["spec"]["selector"]["matchLabels"]


def test_an_upgrade_refuses_another_number_of_shards(helm: Path, tmp_path: Path) -> None:
    """Before anything is changed, and the message says where the way is described; the same number is accepted."""
    [shard] = [
        work
        for name, work in of_kind(list(yaml.safe_load_all(run(helm, BROKERS).stdout)), "StatefulSet").items()
        if name == "shard-1"
    ]
    with cluster_of({"crawl-twinsieve-shard-1": shard}, tmp_path / "config") as config:
        server = ("--dry-run=server", "--is-upgrade", "--kubeconfig", str(config))
        same, other = (run(helm, BROKERS, f"shards.count={count}", more=server) for count in (4, 8))
    assert "shards.count" not in same.stderr  # it asks for more than there is, later
    assert other.returncode != 0
    assert "shards.count is 8, and the release has 4 shards" in other.stderr
    assert "docs/shards.md" in other.stderr


@contextmanager
def cluster_of(sets: dict[str, Document], config: Path) -> Iterator[Path]:
    """Serve the API of Kubernetes as far as it has these StatefulSets; yield a file that leads there."""

    class Api(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path.split("?")[0], sets.get(self.path.rsplit("/", 1)[-1]))
            body = json.dumps(found or {"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
            self.send_response(200 if found else 404)
            self.send_header("Content-Type", "application/json")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: Any) -> None:
            """Say nothing."""

    apps = {"groupVersion": "apps/v1", "version": "v1"}
    resource = {"name": "statefulsets", "singularName": "", "namespaced": True, "kind": "StatefulSet", "verbs": ["get"]}
    answers = {
        "/version": {"major": "1", "minor": NEWEST.split(".")[1], "gitVersion": f"v{NEWEST}.0"},
        "/api": {"kind": "APIVersions", "versions": ["v1"]},
        "/api/v1": {"kind": "APIResourceList", "groupVersion": "v1", "resources": []},
        "/apis": {
            "kind": "APIGroupList",
            "apiVersion": "v1",
            "groups": [{"name": "apps", "versions": [apps], "preferredVersion": apps}],
        },
        "/apis/apps/v1": {"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": [resource]},
    }
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        where = {"server": f"http://127.0.0.1:{server.server_port}"}
        context = {"cluster": "test", "user": "test", "namespace": "default"}
        value = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": where}],
            "users": [{"name": "test", "user": {}}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        }
        config.write_text(json.dumps(value), "utf-8")
        try:
            yield config
        finally:
            server.shutdown()


def test_steps_of_each_group(render: Render) -> None:
    """Fingerprinters are a Deployment without a claim; shards and resolver keep their state."""
    documents = render(BROKERS, "shards.count=1")
    steps = {name: options(work["spec"]["template"])["--steps"] for name, work in serving(documents).items()}
    assert steps == {"fingerprint": "fingerprint", "shard-1": "shard", "resolver": "decide"}
    claims = {name for name, work in serving(documents).items() if "volumeClaimTemplates" in work["spec"]}
    assert claims == {"shard-1", "resolver"}


def test_selectors_select_their_own_pods(render: Render) -> None:
    """Each group selects and spreads its own pods alone, and has a budget of one pod."""
    documents = render(BROKERS)
    groups, budgets = serving(documents), of_kind(documents, "PodDisruptionBudget")
    assert groups.keys() == budgets.keys()
    for name, work in groups.items():
        [spread] = work["spec"]["template"]["spec"]["topologySpreadConstraints"]
        for selector in (work["spec"]["selector"], budgets[name]["spec"]["selector"], spread["labelSelector"]):
            assert [other for other, pod in pods(documents).items() if selects(selector, pod)] == [name]
        assert budgets[name]["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize("values", [(BROKERS,), ALL], ids=["default", "all"])
def test_pods_meet_the_restricted_standard(render: Render, values: tuple[str, ...]) -> None:
    """Kubernetes' strictest pod security standard holds; the file system is read-only, no token of the API is there."""
    for pod in pods(render(*values)).values():
        assert pod["spec"]["automountServiceAccountToken"] is False
        context = pod["spec"]["securityContext"]
        assert context["runAsNonRoot"] is True
        assert context["seccompProfile"] == {"type": "RuntimeDefault"}
        assert f"--uid {context['runAsUser']} " in CONTAINERFILE
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}


def test_what_a_process_writes_can_be_written(render: Render) -> None:
    """State and temporary files are on volumes."""
    for work in serving(render(BROKERS)).values():
        pod = work["spec"]["template"]["spec"]
        [process] = pod["containers"]
        places = {mount["mountPath"]: mount["name"] for mount in process["volumeMounts"]}
        assert "/tmp" in places
        assert any(Path(options(work["spec"]["template"])["--state"]).is_relative_to(place) for place in places)


def test_probes_let_a_shard_restore(render: Render) -> None:
    """A shard has an hour to start, for which it has an answer of its own; nobody asks before whether it is alive."""
    for name, work in serving(render(BROKERS)).items():
        [process] = work["spec"]["template"]["spec"]["containers"]
        [port] = process["ports"]
        assert options(work["spec"]["template"])["--http"] == f"0.0.0.0:{port['containerPort']}"
        paths = {kind: process[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")}
        assert {probe["port"] for probe in paths.values()} == {port["name"]}
        assert {kind: probe["path"] for kind, probe in paths.items()} == {
            "startup": "/startupz",
            "liveness": "/livez",
            "readiness": "/readyz",
        }
        startup = process["startupProbe"]
        if name.startswith("shard-"):
            assert startup["periodSeconds"] * startup["failureThreshold"] >= 3_600


def test_processes_have_the_names_of_their_pods(render: Render) -> None:
    """A pod that comes back has its partitions and transactions again."""
    for work in serving(render(BROKERS)).values():
        pod = work["spec"]["template"]
        [name] = pod["spec"]["containers"][0]["env"]
        assert name["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.name"
        assert options(pod)["--instance"] == f"$({name['name']})"


def test_client_options_come_from_a_secret(render: Render) -> None:
    """Every command reads the mounted file; the chart itself has no Secret, so no password is in a release."""
    documents = render(*ALL)
    assert not [document for document in documents if document["kind"] == "Secret"]
    for pod in pods(documents).values():
        config = Path(options(pod)["--properties"])
        [mount] = [
            mount for mount in pod["spec"]["containers"][0]["volumeMounts"] if mount["mountPath"] == str(config.parent)
        ]
        [volume] = [volume for volume in pod["spec"]["volumes"] if volume["name"] == mount["name"]]
        assert volume["secret"]["secretName"] == "client"
        assert config.name == "client.properties"
    assert all("--properties" not in options(pod) for pod in pods(render(BROKERS)).values())


def test_every_command_has_the_same_brokers_and_prefix(render: Render) -> None:
    """Topics are created where the processes look for them."""
    for pod in pods(render(*ALL)).values():
        assert options(pod)["--bootstrap"] == "kafka-1:9093,kafka-2:9094"
        assert options(pod)["--prefix"] == "news."


def test_topics_are_created_before_everything_else(render: Render) -> None:
    """A hook does it at each install and upgrade; what a retry cannot repair is not tried again."""
    [job] = of_kind(render(BROKERS, "topics.slots=128"), "Job").values()
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    assert job["spec"]["template"]["spec"]["containers"][0]["args"][:2] == ["topics", "create"]
    assert options(job["spec"]["template"])["--slots"] == "128"
    [rule] = job["spec"]["podFailurePolicy"]["rules"]
    assert (rule["action"], rule["onExitCodes"]["values"]) == ("FailJob", [1, 2])
    assert rule["onExitCodes"]["containerName"] == job["spec"]["template"]["spec"]["containers"][0]["name"]
    assert not of_kind(render(BROKERS, "topics.create=false"), "Job")


@pytest.mark.parametrize(
    ("values", "ports", "peers"),
    [((BROKERS,), [9093, 9094], None), (ALL, [19092], [{"ipBlock": {"cidr": "10.0.0.0/8"}}])],
    ids=["default", "all"],
)
def test_the_network_is_closed_but_for_brokers_names_and_metrics(
    render: Render, values: tuple[str, ...], ports: list[int], peers: list[Document] | None
) -> None:
    """Monitoring reads the port of HTTP; pods connect to DNS and to the ports of the brokers."""
    documents = render(*values)
    [policy] = of_kind(documents, "NetworkPolicy").values()
    assert all(selects(policy["spec"]["podSelector"], pod) for pod in pods(documents).values())
    assert policy["spec"]["policyTypes"] == ["Ingress", "Egress"]
    monitoring = {"namespaceSelector": VALUES["networkPolicy"]["monitoringNamespaces"]}
    assert policy["spec"]["ingress"] == [
        {"from": [monitoring], "ports": [{"port": VALUES["httpPort"], "protocol": "TCP"}]}
    ]
    dns, kafka, *others = policy["spec"]["egress"]
    assert others == ([{"ports": [{"port": 443}]}] if values == ALL else [])
    assert sorted((port["port"], port["protocol"]) for port in dns["ports"]) == [(53, "TCP"), (53, "UDP")]
    assert [port["port"] for port in kafka["ports"]] == ports
    assert kafka.get("to") == peers


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ((), "kafka.bootstrap is empty: set it to the brokers"),
        ((BROKERS, "shards.count=5"), "set shards.count to one of 1, 2, 4, 8, 16, 32, 64."),
        ((BROKERS, "shards.count=128"), "does not divide topics.slots, 64"),
        ((BROKERS, "fingerprint.replicas=9"), "Lower fingerprint.replicas; or add partitions"),
        ((BROKERS, "shards.count=0"), "/shards/count"),
        ((BROKERS, "shards.cuont=2"), "'cuont' not allowed"),
        (("kafka.bootstrap=kafka-1",), "/kafka/bootstrap"),
        ((BROKERS, "shards.storage.size=large"), "/shards/storage/size"),
        ((BROKERS, "extraArgs={1}"), "/extraArgs/0"),
    ],
)
def test_values_that_cannot_work_are_refused(helm: Path, values: tuple[str, ...], message: str) -> None:
    """The message names the value, and what to do if values do not fit each other."""
    done = run(helm, *values)
    assert done.returncode != 0
    assert message in done.stderr


@pytest.mark.parametrize("group", ["fingerprint", "shard-1", "resolver"])
def test_commands_are_those_of_the_command_line(render: Render, group: str) -> None:
    """`serve` accepts the command of each group, with the options that all may have."""
    [container] = pods(render(*ALL))[group]["spec"]["containers"]
    chosen = parsed(container["args"])
    assert (chosen["prefix"], chosen["log_level"]) == ("news.", "debug")
    assert chosen["space"] == (None if group == "shard-1" else "tf")


def test_the_chart_names_the_version_of_the_code() -> None:
    """The tag of the image defaults to it."""
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text("utf-8"))
    assert chart["appVersion"] == tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]


def test_the_documents_have_every_value() -> None:
    """The table in docs/service.md has the values of values.yaml with their defaults, and no others."""
    table = (ROOT / "docs" / "service.md").read_text("utf-8").split("### Over many machines")[1].split("\n## ")[0]
    rows = dict(re.findall(r"^\| `([\w.]+)` \|(?: (\S+))? \| ", table, re.MULTILINE))
    assert rows == dict(cells(VALUES))
    assert f"({OLDEST} or newer)" in table


def cells(values: Document, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield each value with its default as the table has it: nothing for what is empty or long."""
    for key, value in values.items():
        if isinstance(value, dict) and value and key not in {"resources", "monitoringNamespaces"}:
            yield from cells(value, f"{prefix}{key}.")
        else:
            shown = json.dumps(value).strip('"') if isinstance(value, str | int) else ""
            yield f"{prefix}{key}", f"`{shown}`" if shown else ""
