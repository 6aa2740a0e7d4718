"""The images that containers are made from: their names, what goes into them, how they are built."""
