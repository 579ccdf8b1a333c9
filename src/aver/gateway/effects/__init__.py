"""The effects of acts: each intent is carried out by one module here, on the order of the executor."""
