"""The pure core: values in, values out. Imports the standard library's value tools and itself only."""
