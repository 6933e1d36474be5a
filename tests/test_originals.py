"""Check the readers of the paper's files in all formats, and the downloads."""

import functools
import http.server
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.io
from data_files import assert_no_leak, ship, use_folder, write_mat, write_original

from study import datasets, originals

FORMS = [(name, version) for name in originals.ORIGINALS for version in ("5", "7.3")]
FILE = "CIFAR10_VGG16_fc7.mat"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    return use_folder(tmp_path, monkeypatch)


# Readers


@pytest.mark.parametrize(("name", "version"), FORMS)
def test_the_papers_files_are_used_if_they_are_there(name, version, folder, capsys, monkeypatch):
    # Small blocks, so that v7.3 is read in several.
    monkeypatch.setattr(originals, "ROWS", 64)
    own = folder / "own"
    own.mkdir()
    X, Y = write_original(name, version, own)
    monkeypatch.setenv("HMOH_DATA", str(own))
    dataset = datasets.load(name)
    assert capsys.readouterr().err == ""
    assert (dataset.name, dataset.role, dataset.stand_in_for) == (name, name, None)
    assert dataset.features.dtype == np.float32 and dataset.features.flags.c_contiguous
    rows = np.arange(len(X))
    labels = Y.ravel()
    if name == "nuswide":
        # The labels were made with falling frequency.
        rows = np.flatnonzero(Y[:, :10].any(axis=1))
        labels = Y[rows, :10]
    assert np.array_equal(dataset.labels, labels)
    np.testing.assert_allclose(dataset.features, X[rows], rtol=1e-6)
    n_train = {"cifar10": 3000, "nuswide": 500}.get(name, len(X))
    assert np.array_equal(dataset.test_rows, np.flatnonzero(rows >= n_train))
    assert_no_leak(dataset, datasets.split(dataset, 0), unseen=False)
    if name != "nuswide":
        assert_no_leak(dataset, datasets.unseen_split(dataset, 0), unseen=True)


@pytest.mark.parametrize("damage", ["cut", "other", "page", "shape", "label"])
@pytest.mark.parametrize("version", ["5", "7.3"])
def test_damaged_original_is_named_with_the_remedy(version, damage, folder):
    # The stand-in must not be used in place of a damaged file.
    ship("udhr205", folder)
    path = folder / "Places205_AlexNet_fc7_PCA128.mat"
    X = np.random.default_rng(0).normal(size=(500, 8))
    y = np.arange(500.0)[:, None] % 5
    if damage == "label":
        y[3] = np.nan
    if damage == "shape":
        X = X[:-1]
    labels_name = "wrong" if damage == "other" else "labels"
    write_mat(path, {"pca_feats": X, labels_name: y}, version)
    if damage == "cut":
        path.write_bytes(path.read_bytes()[:-700])
    if damage == "page":
        path.write_text("<!DOCTYPE html>")
    message = rf"(?s){path.name}.*delete .* and run `python -m study.datasets fetch places205`"
    with pytest.raises(ValueError, match=message):
        datasets.load("places205")


def test_a_mat_file_that_crashes_scipy_is_a_damaged_file(tmp_path):
    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {"x": np.arange(240.0).reshape(40, 6)})
    raw = bytearray(path.read_bytes())
    # The tag of doubles (type 9) and their 1920 bytes gets a type that there is not.
    raw[raw.index(np.array([9, 1920], "<u4").tobytes())] = 40
    path.write_bytes(raw)
    command = [sys.executable, "-c", "import sys, scipy.io as s; s.loadmat(sys.argv[1])", path]
    if subprocess.run(command, capture_output=True).returncode >= 0:
        pytest.skip("this scipy does not crash")
    with pytest.raises(ValueError, match=r"a\.mat is damaged.*stopped with code -"):
        originals.read_mat(path, ["x"])


def test_a_full_disk_is_not_a_damaged_file(tmp_path, monkeypatch):
    path = tmp_path / "a.mat"
    write_mat(path, {"x": np.ones((40, 6))}, "5")
    full = "raise OSError(28, 'No space left on device')"
    script = originals.READ_MAT5.replace("np.save(name, found[name], allow_pickle=False)", full)
    monkeypatch.setattr(originals, "READ_MAT5", script)
    with pytest.raises(originals.NoRoomError, match=r"no room.*a\.mat: free space, or set TMPDIR"):
        originals.read_mat(path, ["x"])


def test_a_damaged_mat_file_raises_nothing_but_the_documented_error(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "a.mat"
    write_mat(path, {"x": rng.normal(size=(40, 6))}, "7.3")
    whole = path.read_bytes()
    n_errors = 0
    for _ in range(150):
        raw = bytearray(whole)
        for place in rng.integers(len(raw), size=rng.integers(1, 8)):
            raw[place] = rng.integers(256)
        path.write_bytes(raw[: rng.integers(len(raw))] if rng.random() < 0.2 else raw)
        try:
            originals.read_mat(path, ["x"])
        except ValueError as error:
            assert str(path) in str(error)
            n_errors += 1
    assert n_errors > 15


# Downloads, from a server on this machine


class Handler(http.server.SimpleHTTPRequestHandler):
    """Serve files without a log; for /cut... promise more bytes than are sent."""

    def log_message(self, *args):
        pass

    def send_header(self, keyword, value):
        if keyword == "Content-Length" and self.path.startswith("/cut"):
            value = "999999"
        super().send_header(keyword, value)


@pytest.fixture
def server(tmp_path, monkeypatch):
    """Serve a folder; give the folder and its address."""
    served = tmp_path / "served"
    served.mkdir()
    handler = functools.partial(Handler, directory=served)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as running:
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield served, f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()
        thread.join()


def point_to(monkeypatch, *urls):
    """Let `fetch` try these addresses, in this order."""
    monkeypatch.setattr(originals.Original, "addresses", list(urls))


def test_fetch_takes_the_first_address_that_has_the_file(folder, server, monkeypatch, capsys):
    served, address = server
    X, _ = write_original("cifar10", "5", served)
    (served / "page.mat").write_text("<!DOCTYPE html> log in, please")
    urls = [address + name for name in ("gone.mat", "page.mat", FILE)]
    point_to(monkeypatch, *urls)
    monkeypatch.setenv("HMOH_DATA", str(folder / "new"))
    datasets.main(["fetch", "cifar10"])
    path = folder / "new" / FILE
    note = path.with_name(f"{FILE}.sha256")
    printed = capsys.readouterr()
    assert str(path) in printed.out and "100%" in printed.err
    assert path.read_bytes() == (served / FILE).read_bytes()
    assert sorted(path.parent.iterdir()) == [path, note]
    assert note.read_text() == f"{datasets.fingerprint('cifar10')}\n"
    assert datasets.load("cifar10").features.shape == X.shape

    # A file that exists is not downloaded again.
    point_to(monkeypatch, address + "gone.mat")
    assert originals.fetch("cifar10") == path

    # A damaged file is refused, and replaced by the next fetch.
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ValueError, match=rf"{FILE} .*sha256 differs.*fetch cifar10"):
        datasets.load("cifar10")
    point_to(monkeypatch, address + FILE)
    assert originals.fetch("cifar10") == path
    assert datasets.load("cifar10").features.shape == X.shape


def test_a_download_that_is_not_the_first_one_is_refused(folder, server, monkeypatch):
    served, address = server
    write_original("cifar10", "5", served)
    point_to(monkeypatch, address + FILE)
    path = originals.fetch("cifar10")
    note = path.with_name(f"{FILE}.sha256")
    noted = note.read_text()
    # The server has another file now: it is refused, and the note stays.
    path.unlink()
    write_original("cifar10", "7.3", served)
    with pytest.raises(OSError, match=r"(?s)could not be fetched.*sha256 differs") as e:
        originals.fetch("cifar10")
    assert noted.strip() in str(e.value) and "delete the note" in str(e.value)
    assert note.read_text() == noted and not path.exists()
    # Without the note, the new file is a first download.
    note.unlink()
    assert originals.fetch("cifar10") == path
    assert note.read_text() != noted
    assert datasets.load("cifar10").name == "cifar10"


def test_failed_fetch_leaves_nothing_and_says_what_to_do(folder, server, monkeypatch):
    served, address = server
    write_original("places205", "7.3", served)
    (served / "Places205_AlexNet_fc7_PCA128.mat").rename(served / "cut.mat")
    point_to(monkeypatch, address + "gone.mat", address + "cut.mat")
    target = folder / "target"
    target.mkdir()
    monkeypatch.setenv("HMOH_DATA", str(target))
    message = (
        r"(?s)fc7_PCA128\.mat could not be fetched; download https"
        r".*gone\.mat: 404.*cut\.mat: "
    )
    with pytest.raises(OSError, match=message):
        originals.fetch("places205")
    assert list(target.iterdir()) == []
    with pytest.raises(SystemExit, match=r"could not be fetched"):
        datasets.main(["fetch", "places205"])


def test_the_papers_files_are_fetched_by_https():
    for original in originals.ORIGINALS.values():
        assert all(url.startswith("https://") for url in original.addresses)


def test_only_the_papers_files_can_be_fetched():
    message = r"'mnist' cannot be fetched; pass .cifar10., .places205., .nuswide."
    with pytest.raises(ValueError, match=message):
        originals.fetch("mnist")
