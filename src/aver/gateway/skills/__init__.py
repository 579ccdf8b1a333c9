"""Skills: packages that steer an agent. They come in under their digest, are looked at whole, and act under it.

package         a directory or ZIP file as a skill, with its digest
indicators      what in a package speaks against it
readings        the ways in which a file can be read
skill_store     packages that came in, and skills that are installed
workload_token  the statement by which an installed skill acts as `skill:<digest>`
"""
