"""Makes a wheel of a program that is built: pip puts it on PATH, and there is nothing to import.

    python packaging/wheel.py PROGRAM PLATFORM FOLDER

PLATFORM is a tag such as manylinux2014_x86_64. What the wheel says of itself stands in pyproject.toml and
Cargo.toml. The same program gives the same wheel, byte for byte. Needs Python 3.11.
"""
import base64
import hashlib
import sys
import tomllib
import zipfile
from pathlib import Path

program, platform, folder = sys.argv[1:]
root = Path(__file__).resolve().parent.parent
package = tomllib.loads((root / "Cargo.toml").read_text())["package"]
project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
name, version = package["name"], package["version"]
about = f"{name}-{version}.dist-info"

# manylinux2014 has another name since, and old versions of pip know the old one alone
platforms = [platform]
if platform.startswith("manylinux2014_"):
    platforms.insert(0, platform.replace("manylinux2014", "manylinux_2_17"))
metadata = [
    "Metadata-Version: 2.4",
    f"Name: {name}",
    f"Version: {version}",
    f"Summary: {package['description']}",
    f"License-Expression: {project['license']}",
    *(f"License-File: {file}" for file in project["license-files"]),
    f"Keywords: {','.join(project['keywords'])}",
    *(f"Classifier: {it}" for it in project["classifiers"]),
    f"Requires-Python: {project['requires-python']}",
    "Description-Content-Type: text/markdown",
    "",
    (root / project["readme"]).read_text(),
]
wheel = ["Wheel-Version: 1.0", "Generator: packaging/wheel.py", "Root-Is-Purelib: false"]
wheel += [f"Tag: py3-none-{it}" for it in platforms]
files = {
    f"{name}-{version}.data/scripts/{name}{Path(program).suffix}": Path(program).read_bytes(),
    f"{about}/METADATA": "\n".join(metadata).encode(),
    f"{about}/WHEEL": "\n".join([*wheel, ""]).encode(),
    **{f"{about}/licenses/{file}": (root / file).read_bytes() for file in project["license-files"]},
}
record = []
for path, content in files.items():
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    record.append(f"{path},sha256={digest},{len(content)}\n")
files[f"{about}/RECORD"] = "".join([*record, f"{about}/RECORD,,\n"]).encode()

path = Path(folder) / f"{name}-{version}-py3-none-{'.'.join(platforms)}.whl"
with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
    for file, content in files.items():
        entry = zipfile.ZipInfo(file, (1980, 1, 1, 0, 0, 0))
        entry.compress_type = zipfile.ZIP_DEFLATED
        entry.external_attr = (0o100755 if "/scripts/" in file else 0o100644) << 16
        archive.writestr(entry, content)
print(path)
