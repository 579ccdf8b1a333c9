"""Aver's knowledge of programs: what each one does with its arguments.

There are three ways to describe a program. Use the first one that is enough.

1. *A line in a table* (`tables/`, language in `spec`). Use it if every option and operand has a fixed meaning: this
   option writes its value, these operands are read. Most programs need no more.

       head, tail :: -[qvz] -n= -c= --lines= --bytes= *read

   A program whose first operand decides what it does (`git`, `cargo`, `npm`) gets one line per subcommand.

2. *A verb* (`verbs`). A line names verbs, and a verb judges one argument. Write a new verb if a line fits, but one of
   its arguments needs a closer look: a URL, a `git` refspec, an HTTP header. A verb sees one word and the invocation.

3. *A handler* (`handlers/`). Write one if arguments depend on each other, if the program starts another program, or if
   it has a language of its own: `find -exec`, `xargs`, `tar`, `sed`, `sh -c`. A handler gets the whole invocation. It
   may still read its options by a line of the table language, and most do.

A program without any of these is reported as `unknown-program`. Read the program's manual before you add a line: an
option that is missing from a line makes the command unclear, unless the line says `lax`.

`apply` finds the description of a program, and carries out a line.
"""
