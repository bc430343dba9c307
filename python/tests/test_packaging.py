# SPDX-License-Identifier: Apache-2.0
"""packaging/: the version is the one of version.h, options are CMake's, an archive depends on what
is in it alone, and man pages and completions say what --help does."""

import hashlib
import importlib.metadata
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from pyencore import __version__

ROOT = pathlib.Path(__file__).resolve().parents[2]


def test_packages_have_the_version():
    manifest = json.loads((ROOT / "packaging/vcpkg/encore/vcpkg.json").read_text())
    assert manifest["version"] == __version__
    changelog = (ROOT / "packaging/debian/changelog").read_text()
    assert re.match(r"encore \((.*)-\d+\) ", changelog)[1] == __version__
    # Debian's packages of shared libraries are called after the SONAME.
    soname = ".".join(__version__.split(".")[:2])
    control = (ROOT / "packaging/debian/control").read_text()
    names = re.findall(r"^Package: (lib\S+[\d.]+)$", control, re.M)
    assert names == [f"libencore{soname}", f"libencore-text{soname}"]
    for name in names:
        assert (ROOT / f"packaging/debian/{name}.install").is_file()


@pytest.mark.skipif(sys.version_info < (3, 11), reason="wants tomllib")
def test_debian_s_metadata_are_those_of_the_wheel(tmp_path):
    subprocess.run([sys.executable, ROOT / "packaging/python_metadata.py", "--into", tmp_path],
                   check=True)
    found, = importlib.metadata.distributions(path=[str(tmp_path)])
    wanted = importlib.metadata.distribution("pyencore")
    assert (found.name, found.version) == (wanted.name, wanted.version)
    assert found.requires == wanted.requires
    for name in ("Summary", "License-Expression", "Requires-Python", "Classifier",
                 "Provides-Extra"):
        assert found.metadata.get_all(name) == wanted.metadata.get_all(name), name


@pytest.mark.parametrize("recipe", ["vcpkg/encore/portfile.cmake", "debian/rules",
                                    "conan/conanfile.py"])
def test_recipes_name_options_of_cmake(recipe):
    known = set(re.findall(r"^option\((\w+)", (ROOT / "CMakeLists.txt").read_text(), re.M))
    text = (ROOT / "packaging" / recipe).read_text()
    named = set(re.findall(r"ENCORE_(?:BUILD|FETCH|OPENMP)\w+", text)) - {"ENCORE_BUILD_"}
    assert named and named <= known, named - known


@pytest.mark.skipif(not shutil.which("cmake"), reason="wants cmake")
@pytest.mark.parametrize("features", ["", "openmp", "command;openmp"])
def test_the_port_of_vcpkg_configures(tmp_path, features):
    found = subprocess.run(
        ["cmake", f"-DWORK={tmp_path}/work", f"-DFEATURES={features}", "-DCONFIGURE_ONLY=ON",
         f"-DOPTIONS=-DCMAKE_PREFIX_PATH={ROOT}/.deps/highway", "-P",
         ROOT / "packaging/vcpkg/check.cmake"], text=True, capture_output=True)
    assert found.returncode == 0, found.stderr
    installed = tmp_path / "work/installed/share/encore"
    assert {path.name for path in installed.iterdir()} == {"copyright", "usage"}


def pack(folder, files, epoch=1_700_000_000):
    """An archive of files in a folder made anew, and its document."""
    for name, data in files:
        path = folder / "encore-1-x" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (len(data), len(data)))
    (folder / "encore-1-x/bin/encore").chmod(0o700 if len(folder.name) % 2 else 0o775)
    subprocess.run([sys.executable, ROOT / "tools/archive.py", folder / "encore-1-x", "--version",
                    "1", "--epoch", str(epoch), "--part", "Highway", "1.2.0", "BSD-3-Clause"],
                   check=True)
    return [folder / f"encore-1-x.{kind}" for kind in ("tar.gz", "spdx.json", "zip")]


def test_archives_of_equal_files_are_equal(tmp_path):
    files = [("lib/libencore.a", b"library"), ("bin/encore", b"program"), ("LICENSE", b"text")]
    (tmp_path / "a").mkdir()
    (tmp_path / "bb").mkdir()
    archive, document, zipped = pack(tmp_path / "a", files)
    for one, other in zip((archive, document, zipped), pack(tmp_path / "bb", files[::-1])):
        assert one.read_bytes() == other.read_bytes()

    with tarfile.open(archive) as tar:
        entries = {entry.name: entry for entry in tar}
        assert {(entry.uid, entry.gid, entry.mtime) for entry in entries.values()} == {
            (0, 0, 1_700_000_000)}
        assert entries["encore-1-x/bin/encore"].mode == 0o755
        assert entries["encore-1-x/LICENSE"].mode == 0o644
        assert tar.extractfile("encore-1-x/lib/libencore.a").read() == b"library"
    with zipfile.ZipFile(zipped) as packed:
        assert {entry.filename: packed.read(entry) for entry in packed.infolist()} == {
            f"encore-1-x/{name}": data for name, data in files}
        assert {entry.filename: entry.external_attr >> 16 for entry in packed.infolist()} == {
            f"encore-1-x/{name}": 0o100755 if name == "bin/encore" else 0o100644
            for name, _ in files}

    found = json.loads(document.read_text())
    sums = {file["fileName"]: [item["checksumValue"] for item in file["checksums"]]
            for file in found["files"]}
    assert sums == {f"./{name}": [hashlib.sha1(data).hexdigest(), hashlib.sha256(data).hexdigest()]
                    for name, data in files}
    # What SPDX 2.3 says of it: SHA-1 of the sums in their order.
    code = hashlib.sha1("".join(sorted(sha1 for sha1, _ in sums.values())).encode()).hexdigest()
    assert found["packages"][0]["packageVerificationCode"] == {"packageVerificationCodeValue": code}
    assert [package["name"] for package in found["packages"]] == ["encore", "Highway"]
    named = {item["SPDXID"] for item in [found, *found["packages"], *found["files"]]}
    assert {end for item in found["relationships"]
            for end in (item["spdxElementId"], item["relatedSpdxElement"])} == named

    (tmp_path / "c").mkdir()
    assert archive.read_bytes() != pack(tmp_path / "c", [*files, ("x", b"")])[0].read_bytes()


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """Man pages and completions of the command, below a folder share."""
    if "ENCORE" not in os.environ:
        pytest.skip("wants the command in ENCORE")
    folder = tmp_path_factory.mktemp("usr")
    subprocess.run([sys.executable, ROOT / "packaging/command_files.py", "--encore",
                    os.environ["ENCORE"], "--into", folder], check=True)
    return folder / "share"


def test_each_command_has_a_man_page(written):
    shown = subprocess.run([os.environ["ENCORE"], "--help"], text=True, capture_output=True,
                           check=True).stdout
    listed = shown.split("Subcommands:\n")[1].split("\n\n")[0]
    commands = re.findall(r"^  ([a-z]+) +\S", listed, re.M)
    assert "embed" in commands
    pages = {path.name: path.read_text() for path in (written / "man/man1").iterdir()}
    assert set(pages) == {"encore.1", *(f"encore-{name}.1" for name in commands)}
    for name in commands:
        text = subprocess.run([os.environ["ENCORE"], name, "--help"], text=True,
                              capture_output=True, check=True).stdout
        # A page has all words of --help, but what roff says in its own way.
        page = re.sub(r"^\.\S+( |$)|\\&", "", pages[f"encore-{name}.1"], flags=re.M)
        for there, meant in (("\\-", "-"), ("\\(aq", "'"), ("\\(ga", "`"), ("\\e", "\\")):
            page = page.replace(there, meant)
        titles = r"\n(?:Usage: |Options:\n|Arguments:\n|Examples:\n)|\n\w+:\n(?=  )"
        wanted = re.sub(titles, "\n", text[text.index("\n"):]).split()
        missing = [word for word in wanted if word not in page.split()]
        assert not missing, (name, missing)
        assert " EXAMPLES\n" in pages[f"encore-{name}.1"] or "\nExamples:\n" not in text


@pytest.mark.parametrize("words, wanted", [
    (["emb"], {"embed"}),
    (["--v"], {"--version"}),
    (["embed", "--prec"], {"--precision"}),
    (["embed", "--precision", "b"], {"bf16"}),
    (["embed", "--precision", ""], {"f32", "bf16", "int8", "int4"}),
    (["bench", "--precision", "int"], {"int8", "int4"}),
    (["rerank", "--no-such"], set()),
    (["embed", "--input", "x"], set()),  # files, which bash itself completes
])
def test_bash_completes(written, words, wanted):
    script = (f'. "{written}/bash-completion/completions/encore"\nCOMP_WORDS=("$@")\n'
              'COMP_CWORD=$(($# - 1))\n_encore || true\nprintf "%s\\n" "${COMPREPLY[@]}"')
    found = subprocess.run(["bash", "-euc", script, "bash", "encore", *words], text=True,
                           capture_output=True, check=True).stdout.split()
    assert set(found) == wanted and len(found) == len(wanted)


@pytest.mark.parametrize("shell, name", [("zsh", "zsh/vendor-completions/_encore"),
                                         ("fish", "fish/vendor_completions.d/encore.fish")])
def test_other_shells_complete(written, shell, name):
    text = (written / name).read_text()
    for flag, values in (("precision", "f32 bf16 int8 int4"), ("on-long", "cut error")):
        assert flag in text and values in text
    if shutil.which(shell):
        subprocess.run([shell, "-n", written / name], check=True)
