"""The scripted model behind a session: when it speaks, what it understands, what it says; and when speech ends.

It stands in for a language model in the one conversation that the lab holds, and knows what that one knew: the turns
it was given and the last tool response. Pure: instants are arguments, chance and call ids come from outside.
"""
