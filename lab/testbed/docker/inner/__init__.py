"""What runs inside the lab's own containers: the agent's main, names and routes, services, the inspector."""
