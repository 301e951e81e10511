"""The planning problem: the request, its arrays, flows over them, and the form of a solution."""
