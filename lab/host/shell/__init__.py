"""Hosts, remotes, jobs and simulators on asyncio, around the machines."""
