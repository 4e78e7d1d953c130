/* Included before a fuzz target (-include, -DTARGET=its name) that becomes a part of the unit test
 * corpus_test.c, which gives it each input of its corpus: built with the flags of all other tests,
 * without clang. */
#ifndef CORPUS_H
#define CORPUS_H

#include <stddef.h>
#include <stdint.h>

typedef int corpus_target(const uint8_t *data, size_t size);

/* Called before main(). run is a test function of Check; it calls corpus_replay(). */
void corpus_register(const char *name, void (*run)(int index));
void corpus_replay(const char *name, corpus_target *target);

#ifdef TARGET
#define CORPUS_JOIN(a, b) a##b
#define CORPUS_NAME(a, b) CORPUS_JOIN(a, b)
#define CORPUS_STRING(a) #a
#define CORPUS_TEXT(a) CORPUS_STRING(a)
#define LLVMFuzzerTestOneInput CORPUS_NAME(corpus_, TARGET)

corpus_target LLVMFuzzerTestOneInput;

static void corpus_run(int index)
{
	(void)index;
	corpus_replay(CORPUS_TEXT(TARGET), LLVMFuzzerTestOneInput);
}

__attribute__((constructor)) static void corpus_add(void)
{
	corpus_register(CORPUS_TEXT(TARGET), corpus_run);
}
#endif

#endif
