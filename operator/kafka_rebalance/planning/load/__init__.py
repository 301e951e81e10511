"""Balance by load: the use of brokers within the bands of ``goals.load``, for few bytes, at the counts of the plan.

Imported only when a request has such goals, because it needs numba.
"""
