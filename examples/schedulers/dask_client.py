"""One output in parts by Dask: python dask_client.py [SCHEDULER_ADDRESS]

Without an address four worker processes are started on this machine.
"""
import json
import subprocess
import sys

from distributed import Client, LocalCluster

COMMAND = ["tslice", "input.npy", "[::-1]", "-o", "reversed.npy"]

if __name__ == "__main__":
    cluster = sys.argv[1] if len(sys.argv) > 1 else LocalCluster(n_workers=4, threads_per_worker=1)
    client = Client(cluster)
    command = [*COMMAND, "--part", "plan/16"]
    plan = [json.loads(line) for line in subprocess.check_output(command).splitlines()]
    run = lambda part: subprocess.run(part["argv"], check=True).returncode
    print(client.gather(client.map(run, plan, retries=2, pure=False)))
