"""Other optimisers behind one interface; each has a module and an environment of its own here.

Each is set up as its documentation shows, with its own defaults and its own kinds of parameters, on
the problem's levels, and recommends what it would itself hand over; README.md has the list.
"""
