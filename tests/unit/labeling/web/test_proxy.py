"""Behind a real nginx whose configuration says nothing but where to pass requests on."""

from __future__ import annotations

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
# No Host, X-Forwarded-For or X-Forwarded-Proto is passed on. TLS ends at the proxy, so the server sees none of it.
CONFIGURATION = """
daemon off; master_process off; pid {folder}/nginx.pid; error_log {folder}/error.log;
events {{ }}
http {{
  access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass http://127.0.0.1:{server}; }} }}
}}
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return int(found.getsockname()[1])


@pytest.fixture
def proxy(project: Store, tmp_path: Path) -> Iterator[str]:
    """Address of an nginx before a served project."""
    if NGINX is None:
        pytest.skip("nginx is not installed")
    app = create_app(project, base_url=PUBLIC, hosts=["label.example", "127.0.0.1"], backups=False)
    port = free_port()
    with listening("127.0.0.1", 0) as listener:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", forwarded_allow_ips="127.0.0.1"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        text = CONFIGURATION.format(folder=tmp_path, port=port, server=listener.getsockname()[1])
        (tmp_path / "nginx.conf").write_text(text)
        process = subprocess.Popen([NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf")])
        try:
            wait_for(port, process)
            yield f"http://127.0.0.1:{port}"
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
    token = Access(project).invite("Ada")
    with httpx.Client(base_url=proxy, headers={"host": "label.example", "origin": PUBLIC}) as browser:
        codes = [browser.post(f"/join/1-guess{number}").status_code for number in range(11)]
        assert codes == [404] * 10 + [429]
        answer = browser.post(f"/join/{token}")
        assert answer.status_code == 303
        assert "secure" in [part.strip().lower() for part in answer.headers["set-cookie"].split(";")]
        for origin in ("https://evil.example", "http://label.example", "https://label.example:8443"):
            assert browser.post(f"/join/{token}", headers={"origin": origin}).status_code == 403
