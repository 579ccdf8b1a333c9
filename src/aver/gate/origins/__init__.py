"""The meaning of a tool call: what the tool does, what each argument is for, and where its targets come from.

    tool_class   read, fetch, send, share, pay, create, change or delete
    roles        what an argument is: a destination, an object, a secret, a time, an amount, or content
    plain_text   which texts can be compared at all, and how a value is found in a text
    user_words   what the user asked for, named and pointed at
    own_places   files of the workspace, and pages of a site that the user named
    read_values  the values that the session has read, with the record and the author of each
    judgement    the origin of each target, and the doubts about a call
    answer       the same questions about the answer that a person gets

Everything here is pure: no file, no socket, no clock. A value counts as named, linked or read only if it is there as it
stands. A value that could be read in two ways has no origin.
"""
