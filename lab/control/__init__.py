r"""The controller as a service: flows, faults, events, captures and health of one router over HTTP.

::

    serve (main, in the router)  embedded (a thread beside a testbed)
              \                      /
               server   uvicorn on a TCP or a Unix socket
                 |
               gate     who may ask: host, origin, token, size
                 |
               app      routes; models (bodies), problems (RFC 9457), page (/docs), metrics
                 |
               controller   faults and flows, and when they change; events; no HTTP in it
                 |            \
               router         verdict -> examination (in a process of its own: it reads the captures)
               (a protocol; LocalRouter here, the testbeds' routers elsewhere)
"""
