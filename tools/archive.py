#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Packs a folder into FOLDER.tar.gz and FOLDER.zip, with FOLDER.spdx.json beside them, the list of
# what is in them (SPDX 2.3). They have the same bytes for the same files, whatever their times,
# owners and order on the disk:
#
#   tools/archive.py FOLDER --version 0.1.0 --epoch 1700000000 --part Highway 1.2.0 BSD-3-Clause

import argparse
import datetime
import gzip
import hashlib
import json
import pathlib
import tarfile
import uuid
import zipfile


def contents(folder):
    """Folders and files below `folder`, by their names."""
    found = sorted(folder.rglob("*"), key=lambda path: path.relative_to(folder).as_posix())
    for path in found:
        if path.is_symlink() or not (path.is_dir() or path.is_file()):
            raise SystemExit(f"archive: {path} is neither a file nor a folder")
    return found


def write_archive(folder, output, epoch):
    with open(output, "wb") as raw, \
            gzip.GzipFile("", "wb", 9, raw, mtime=epoch) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in [folder, *contents(folder)]:
            entry = tarfile.TarInfo(path.relative_to(folder.parent).as_posix())
            entry.mtime = epoch
            if path.is_dir():
                entry.type, entry.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(entry)
                continue
            entry.size = path.stat().st_size
            entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            with open(path, "rb") as file:
                tar.addfile(entry, file)


def write_zip(folder, output, epoch):
    time = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc).timetuple()[:6]
    with zipfile.ZipFile(output, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in contents(folder):
            if path.is_file():
                entry = zipfile.ZipInfo(path.relative_to(folder.parent).as_posix(), time)
                entry.create_system = 3  # modes are Unix's
                executable = path.stat().st_mode & 0o100
                entry.external_attr = (0o100755 if executable else 0o100644) << 16
                entry.compress_type = zipfile.ZIP_DEFLATED
                packed.writestr(entry, path.read_bytes())


def describe(folder, version, epoch, parts):
    """The SPDX document: encore with its files, and what was linked into them."""
    files = []
    for path in contents(folder):
        if path.is_file():
            data = path.read_bytes()
            files.append({
                "SPDXID": f"SPDXRef-File-{len(files)}",
                "fileName": f"./{path.relative_to(folder).as_posix()}",
                "checksums": [{"algorithm": name.upper(),
                               "checksumValue": hashlib.new(name, data).hexdigest()}
                              for name in ("sha1", "sha256")],
                "licenseConcluded": "NOASSERTION",
                "licenseInfoInFiles": ["NOASSERTION"],
                "copyrightText": "NOASSERTION",
            })
    sums = sorted(file["checksums"][0]["checksumValue"] for file in files)
    code = hashlib.sha1("".join(sums).encode()).hexdigest()
    created = datetime.datetime.fromtimestamp(epoch, datetime.timezone.utc)
    common = {"downloadLocation": "NOASSERTION", "licenseConcluded": "NOASSERTION",
              "copyrightText": "NOASSERTION"}
    packages = [{"SPDXID": "SPDXRef-encore", "name": "encore", "versionInfo": version, **common,
                 "licenseDeclared": "Apache-2.0", "filesAnalyzed": True,
                 "licenseInfoFromFiles": ["NOASSERTION"],
                 "packageVerificationCode": {"packageVerificationCodeValue": code}}]
    for number, (name, part_version, licence) in enumerate(parts):
        packages.append({"SPDXID": f"SPDXRef-Part-{number}", "name": name,
                         "versionInfo": part_version, **common, "licenseDeclared": licence,
                         "filesAnalyzed": False})
    related = [("SPDXRef-DOCUMENT", "DESCRIBES", "SPDXRef-encore")]
    related += [("SPDXRef-encore", "CONTAINS", file["SPDXID"]) for file in files]
    related += [("SPDXRef-encore", "STATIC_LINK", part["SPDXID"]) for part in packages[1:]]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": folder.name,
        # One for each content.
        "documentNamespace": uuid.uuid5(uuid.NAMESPACE_OID, f"{folder.name} {code}").urn,
        "creationInfo": {"created": created.strftime("%Y-%m-%dT%H:%M:%SZ"),
                         "creators": ["Tool: encore-archive"]},
        "packages": packages,
        "files": files,
        "relationships": [{"spdxElementId": left, "relationshipType": kind,
                           "relatedSpdxElement": right} for left, kind, right in related],
    }


def main():
    parser = argparse.ArgumentParser(description="Packs a folder, the same bytes each time.")
    parser.add_argument("folder", type=pathlib.Path, help="its name is the archive's")
    parser.add_argument("--version", required=True, help="encore's")
    parser.add_argument("--epoch", required=True, type=int,
                        help="the time of all files, in seconds since 1970")
    parser.add_argument("--part", nargs=3, action="append", default=[],
                        metavar=("NAME", "VERSION", "LICENCE"), help="what was linked in")
    arguments = parser.parse_args()
    if not arguments.folder.is_dir():
        parser.error(f"{arguments.folder} is not a folder")
    base = arguments.folder.parent / arguments.folder.name
    write_archive(arguments.folder, f"{base}.tar.gz", arguments.epoch)
    write_zip(arguments.folder, f"{base}.zip", arguments.epoch)
    document = describe(arguments.folder, arguments.version, arguments.epoch, arguments.part)
    pathlib.Path(f"{base}.spdx.json").write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
