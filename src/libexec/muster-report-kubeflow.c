/* muster-report-kubeflow: takes a report of a job's progress to Kubeflow's Trainer.
 *
 * muster-report-kubeflow(1) is the contract with muster; proto/k8s/trainer_status.h writes the
 * report. */
#include <curl/curl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/worker/exit_code.h"

#define REPORT_MAX ((size_t)64 << 10)
#define TOKEN_MAX ((size_t)64 << 10)
#define ANSWER_MAX 200 /* what is shown of a refusal */
#define TIMEOUT_MS 10000L

static int fail(const char *text)
{
	fprintf(stderr, "%s\n", text);
	return EXIT_CODE_FAILED;
}

/* The beginning of the answer, for the message. */
static size_t on_data(char *data, size_t size, size_t count, void *arg)
{
	struct buf *answer = arg;
	size_t len = size * count;
	buf_append(answer, data, MIN(len, ANSWER_MAX - buf_len(answer)));
	return len;
}

static int make_headers(struct curl_slist **headers, struct err *err)
{
	const char *path = getenv("KUBEFLOW_TRAINER_SERVER_TOKEN");
	*headers = curl_slist_append(*headers, "Content-Type: application/json");
	*headers = curl_slist_append(*headers, "Expect:");
	if (!path || !*path)
		return 0;
	/* Tokens are replaced while the job runs, so each report reads the file. */
	AUTO(buf_done) struct buf token = BUF_INIT;
	int r = file_read(path, TOKEN_MAX, &token, err);
	if (r < 0)
		return r;
	const char *text = buf_str(&token);
	AUTO_FREE char *line =
		mem_printf("Authorization: Bearer %.*s", (int)strcspn(text, " \t\r\n"), text);
	*headers = curl_slist_append(*headers, line);
	return 0;
}

static int post(const char *url, const char *report, const struct curl_slist *headers)
{
	const char *authority = getenv("KUBEFLOW_TRAINER_SERVER_CA_CERT");
	char error[CURL_ERROR_SIZE] = "";
	AUTO(buf_done) struct buf answer = BUF_INIT;
	long code = 0;
	CURL *easy = curl_easy_init();
	if (!easy)
		abort(); /* out of memory */
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT, 1L);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, TIMEOUT_MS);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
	curl_easy_setopt(easy, CURLOPT_POSTFIELDS, report);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, &answer);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, error);
	if (authority && *authority)
		curl_easy_setopt(easy, CURLOPT_CAINFO, authority);
	CURLcode r = curl_easy_perform(easy);
	curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &code);
	curl_easy_cleanup(easy);
	if (r == CURLE_OK && code / 100 == 2)
		return EXIT_CODE_OK;
	AUTO_FREE char *text =
		r == CURLE_OK ? mem_printf("%s answers %ld: %s", url, code, buf_str(&answer))
			      : mem_printf("%s: %s", url, *error ? error : curl_easy_strerror(r));
	return fail(text);
}

int main(int argc, char **argv)
{
	const char *url = getenv("KUBEFLOW_TRAINER_SERVER_URL");
	AUTO(buf_done) struct buf report = BUF_INIT;
	struct err err = ERR_INIT;
	if (argc > 1) {
		fprintf(stderr, "%s: takes no arguments; see muster-report-kubeflow(1)\n", argv[0]);
		return EXIT_CODE_USAGE;
	}
	if (!url || !*url)
		return fail("KUBEFLOW_TRAINER_SERVER_URL is not set");
	if (fd_read_all(STDIN_FILENO, REPORT_MAX, &report, &err) < 0)
		return fail(err.msg);
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return fail("libcurl cannot be initialised");
	struct curl_slist *headers = NULL;
	int status = make_headers(&headers, &err) < 0 ? fail(err.msg)
						      : post(url, buf_str(&report), headers);
	curl_slist_free_all(headers);
	return status;
}
