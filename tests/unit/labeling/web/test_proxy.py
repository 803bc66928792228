"""Behind a real nginx: with the configuration of the guide, and without a word about what to pass on."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
import uvicorn

from gradrank.labeling.project.access import Access
from gradrank.labeling.project.store import Store
from gradrank.labeling.web.app import create_app
from gradrank.runtime.listening import listening

PUBLIC = "https://label.example"
NGINX = shutil.which("nginx")
OPENSSL = shutil.which("openssl")
GUIDE = Path(__file__).parents[4] / "docs" / "guides" / "labeling.md"
FRAME = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  {server}
}}
"""
# No Host, X-Forwarded-For or X-Forwarded-Proto is passed on. TLS ends before this proxy, so the server sees none of it.
BARE = "server { listen 127.0.0.1:443; location / { proxy_pass http://127.0.0.1:8765; } }"


def of_the_guide(folder: Path) -> str:
    """The server that the guide tells people to write, with a certificate of its own."""
    if OPENSSL is None:
        pytest.skip("openssl is not installed")
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    call = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", "/CN=label.example"]
    subprocess.run([OPENSSL, *call, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    (text,) = re.findall(r"```nginx\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)
    for name, ours in {"/etc/ssl/label.example.pem": certificate, "/etc/ssl/label.example.key": key}.items():
        assert name in text
        text = text.replace(name, str(ours))
    return str(text)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture(params=["bare", "guide"])
def proxy(request: pytest.FixtureRequest, project: Store, tmp_path: Path) -> Iterator[str]:
    """Address of an nginx before a served project."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    site, scheme = (BARE, "http") if request.param == "bare" else (of_the_guide(tmp_path), "https")
    app = create_app(project, base_url=PUBLIC, hosts=["label.example", "127.0.0.1"], backups=False)
    port = free_port()
    with listening("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", forwarded_allow_ips="127.0.0.1"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        assert "443" in site
        assert "127.0.0.1:8765" in site
        site = site.replace("8765", str(listener.getsockname()[1])).replace("127.0.0.1:443", "443")
        site = site.replace("listen 443", f"listen 127.0.0.1:{port}")
        (tmp_path / "nginx.conf").write_text(FRAME.format(folder=tmp_path, server=site))
        process = subprocess.Popen([NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        try:
            wait_for(port, process)
            yield f"{scheme}://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()
            server.should_exit = True
            thread.join()


def wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and process.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    pytest.fail("nginx does not listen")


def test_people_come_in_and_others_stay_out(proxy: str, project: Store) -> None:
    number, name = (
        project.read().execute("SELECT a.id, u.name FROM assignment a JOIN assessor u ON u.id = a.assessor").fetchone()
    )
    token = Access(project).invite(name)
    headers = {"host": "label.example", "origin": PUBLIC}
    with httpx.Client(base_url=proxy, headers=headers, verify=False) as browser:
        codes = [browser.post(f"/join/1-guess{number}").status_code for number in range(11)]
        assert codes == [404] * 10 + [429]
        answer = browser.post(f"/join/{token}")
        assert answer.status_code == 303
        assert "secure" in [part.strip().lower() for part in answer.headers["set-cookie"].split(";")]
        for origin in ("https://evil.example", "http://label.example", "https://label.example:8443"):
            assert browser.post(f"/join/{token}", headers={"origin": origin}).status_code == 403
        page = browser.get(f"/task/{number}", headers={"cookie": answer.headers["set-cookie"].split(";")[0]})
        assert page.status_code == 200
