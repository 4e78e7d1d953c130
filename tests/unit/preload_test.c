#include "unit.h"

#include "base/buf.h"
#include "run/preload.h"

static const char *why(struct buf *out, char *const *worker, char *const *template)
{
	buf_clear(out);
	return preload_env_differs(worker, template, out) ? buf_str(out) : NULL;
}

TEST(what_libraries_read_when_loaded_must_be_the_same)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	char *const template[] = { (char *)"HOME=/", (char *)"OMP_NUM_THREADS=2",
				   (char *)"PYTHONHASHSEED=1", NULL };
	char *const same[] = { (char *)"PYTHONHASHSEED=1", (char *)"RANK=3",
			       (char *)"OMP_NUM_THREADS=2", NULL };
	char *const other[] = { (char *)"PYTHONHASHSEED=1", (char *)"OMP_NUM_THREADS=1", NULL };
	char *const more[] = { (char *)"PYTHONHASHSEED=1", (char *)"OMP_NUM_THREADS=2",
			       (char *)"LD_PRELOAD=x.so", NULL };
	char *const less[] = { (char *)"OMP_NUM_THREADS=2", NULL };
	ck_assert_ptr_null(why(&out, same, template));
	ck_assert_str_eq(why(&out, other, template),
			 "OMP_NUM_THREADS=1 is not what the template was started with");
	ck_assert_str_eq(why(&out, more, template),
			 "LD_PRELOAD=x.so is not what the template was started with");
	ck_assert_str_eq(why(&out, less, template),
			 "the template was started with PYTHONHASHSEED=1");
}

TEST(every_kind_of_library_counts_and_nothing_else)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	static const char *const counts[] = { "OMP_X=1",    "GOMP_X=1",	    "KMP_X=1",
					      "MKL_X=1",    "OPENBLAS_X=1", "LD_X=1",
					      "MALLOC_X=1", "PYTHONPATH=x" };
	static const char *const free_to_differ[] = { "RANK=1", "CUDA_VISIBLE_DEVICES=1",
						      "TORCHELASTIC_X=1", "XOMP_X=1" };
	char *const empty[] = { NULL };
	for (size_t i = 0; i < ARRAY_LEN(counts); i++)
		ck_assert_ptr_nonnull(why(&out, (char *const[]){ (char *)counts[i], NULL }, empty));
	for (size_t i = 0; i < ARRAY_LEN(free_to_differ); i++)
		ck_assert_ptr_null(
			why(&out, (char *const[]){ (char *)free_to_differ[i], NULL }, empty));
}
