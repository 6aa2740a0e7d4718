"""What acts for the caller inside a node, whatever the backend that made the node.

::

    caller                                        node
    AgentNode, AgentRouter -- Channel (rpc) ----- NodeService: Commands, Observing, Sysctls, services
    AgentProcess <----------- events ------------ what programs print, and their ends
    AgentRouter ------------- Channel ----------- hosted services, a process each: firewall, capture

Both ends run the same version of the lab on the same kernel, so instants are comparable and values travel pickled.
"""
