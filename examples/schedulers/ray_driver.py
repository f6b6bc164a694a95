"""One output in parts by Ray: python ray_driver.py [ADDRESS]

Without an address Ray starts on this machine.
"""
import json
import subprocess
import sys

import ray

COMMAND = ["tslice", "input.npy", "[::-1]", "-o", "reversed.npy"]


@ray.remote(num_cpus=1, max_retries=2, retry_exceptions=True)
def run(part):
    return subprocess.run(part["argv"], check=True).returncode


ray.init(address=sys.argv[1] if len(sys.argv) > 1 else None)
command = [*COMMAND, "--part", "plan/16"]
plan = [json.loads(line) for line in subprocess.check_output(command).splitlines()]
print(ray.get([run.remote(part) for part in plan]))
