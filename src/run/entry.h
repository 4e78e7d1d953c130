/* The entry point: what the word after the options means, and the command line of each worker.
 *
 * A word is run by the Python interpreter if it is a file that ends in ".py" or is not executable
 * (a directory with a __main__.py too); else it is a program: an executable file, or a name on
 * PATH. The interpreter is $PYTHON_EXEC, else `python` beside the muster program (a virtual
 * environment without activation), else `python`, else `python3` on PATH; it runs unbuffered (-u).
 */
#ifndef RUN_ENTRY_H
#define RUN_ENTRY_H

#include "base/strv.h"
#include "base/err.h"

enum entry_kind {
	ENTRY_AUTO,	 /* decide by the word */
	ENTRY_MODULE,	 /* python -m WORD */
	ENTRY_NO_PYTHON, /* the word itself is the program */
	ENTRY_RUN_PATH,	 /* the script inside a small runpy bootstrap */
};

struct entry {
	char *path;	  /* for execve(); has a slash */
	struct strv argv; /* as typed, macros not yet replaced */
	size_t fixed; /* the first `fixed` words have no macros: the program and its own options */
	char *title;  /* its name in reports: the script, module or program as typed */
	bool python;  /* `path` is the interpreter */
};

#define ENTRY_INIT ((struct entry){ .path = NULL })

/* `word` and the words in `args` (NULL-terminated). -ENOENT: no such file; -EACCES, -EISDIR: it
 * exists but cannot be run. */
int entry_resolve(enum entry_kind kind, const char *word, char *const *args,
		  struct entry *ret_entry, struct err *err);
void entry_done(struct entry *entry);

/* The words for one worker: $local_rank and ${local_rank} are replaced, every other `$` stays. */
void entry_argv(const struct entry *entry, uint32_t local_rank, struct strv *ret_argv);

/* Explains why a worker could not be started, with the remedy. */
void entry_explain_spawn(const struct entry *entry, int error, struct err *err);

#endif
