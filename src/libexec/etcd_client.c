#include "libexec/etcd_client.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "proto/etcd.h"

#define HTTP_OK 200

/* One HTTP exchange. `easy` is NULL when there is none. */
struct exchange {
	CURL *easy;
	struct curl_slist *headers;
	struct buf answer;
	bool too_long;
	char error[CURL_ERROR_SIZE];
};

struct etcd_client {
	const struct etcd_client_config *config;
	CURLM *multi;
	struct exchange request, watch;
	char token[ETCD_TOKEN_MAX]; /* "": none yet */

	/* The current request, kept because it may have to wait for a log-in. */
	size_t endpoint;
	struct buf path, body;
	bool logging_in; /* the exchange is a log-in, the request comes after it */
	bool token_is_new;

	size_t told; /* bytes of the watch's answer that the caller has received */
	char reason[ETCD_CLIENT_REASON_MAX];
};

static void exchange_end(struct etcd_client *client, struct exchange *exchange)
{
	if (exchange->easy) {
		curl_multi_remove_handle(client->multi, exchange->easy);
		curl_easy_cleanup(exchange->easy);
	}
	curl_slist_free_all(exchange->headers);
	exchange->easy = NULL;
	exchange->headers = NULL;
}

static size_t on_data(char *data, size_t size, size_t count, void *arg)
{
	struct exchange *exchange = arg;
	size_t len = size * count;
	if (len > ETCD_ANSWER_MAX - buf_len(&exchange->answer)) {
		exchange->too_long = true;
		return 0;
	}
	buf_append(&exchange->answer, data, len);
	return len;
}

static void set_tls(CURL *easy, const struct etcd_client_config *config)
{
	if (config->ca_file)
		curl_easy_setopt(easy, CURLOPT_CAINFO, config->ca_file);
	if (config->cert_file)
		curl_easy_setopt(easy, CURLOPT_SSLCERT, config->cert_file);
	if (config->key_file)
		curl_easy_setopt(easy, CURLOPT_SSLKEY, config->key_file);
}

static struct curl_slist *make_headers(const struct etcd_client *client, bool with_token)
{
	struct curl_slist *headers = curl_slist_append(NULL, "Content-Type: application/json");
	headers = curl_slist_append(headers, "Expect:");
	if (with_token) {
		AUTO_FREE char *line = mem_printf("Authorization: %s", client->token);
		headers = curl_slist_append(headers, line);
	}
	return headers;
}

/* `body` is copied. A watch has no end, so only its connection is timed. */
static void exchange_begin(struct etcd_client *client, struct exchange *exchange, size_t endpoint,
			   const char *path, const char *body)
{
	const struct etcd_client_config *config = client->config;
	long timeout_ms = (long)(config->timeout_ns / NS_PER_MS);
	bool endless = exchange == &client->watch;
	exchange_end(client, exchange);
	buf_clear(&exchange->answer);
	exchange->too_long = false;
	exchange->error[0] = '\0';
	exchange->headers = make_headers(client, *client->token && !client->logging_in);

	AUTO_FREE char *url = mem_printf("%s%s", config->endpoints.items[endpoint], path);
	CURL *easy = exchange->easy = curl_easy_init();
	if (!easy)
		abort(); /* out of memory */
	curl_easy_setopt(easy, CURLOPT_URL, url);
	curl_easy_setopt(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl_easy_setopt(easy, CURLOPT_HTTP_VERSION, (long)CURL_HTTP_VERSION_1_1);
	curl_easy_setopt(easy, CURLOPT_NOPROXY, "*");
	curl_easy_setopt(easy, CURLOPT_NOSIGNAL, 1L);
	curl_easy_setopt(easy, CURLOPT_QUICK_EXIT,
			 1L); /* do not wait for a look-up that timed out */
	curl_easy_setopt(easy, CURLOPT_TCP_KEEPALIVE, 1L);
	curl_easy_setopt(easy, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
	curl_easy_setopt(easy, CURLOPT_TIMEOUT_MS, endless ? 0L : timeout_ms);
	curl_easy_setopt(easy, CURLOPT_HTTPHEADER, exchange->headers);
	curl_easy_setopt(easy, CURLOPT_COPYPOSTFIELDS, body);
	curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, on_data);
	curl_easy_setopt(easy, CURLOPT_WRITEDATA, exchange);
	curl_easy_setopt(easy, CURLOPT_ERRORBUFFER, exchange->error);
	set_tls(easy, config);
	curl_multi_add_handle(client->multi, easy);
}

int etcd_client_new(const struct etcd_client_config *config, struct etcd_client **ret_client,
		    struct err *err)
{
	if (curl_global_init(CURL_GLOBAL_DEFAULT) != 0)
		return err_set(err, EIO, "libcurl cannot be initialised");
	struct etcd_client *client = NEW(struct etcd_client);
	client->config = config;
	client->multi = curl_multi_init();
	if (!client->multi)
		abort(); /* out of memory */
	*ret_client = client;
	return 0;
}

void etcd_client_free(struct etcd_client *client)
{
	if (!client)
		return;
	exchange_end(client, &client->request);
	exchange_end(client, &client->watch);
	buf_done(&client->request.answer);
	buf_done(&client->watch.answer);
	buf_done(&client->path);
	buf_done(&client->body);
	curl_multi_cleanup(client->multi);
	curl_global_cleanup();
	free(client);
}

/* The request, or the log-in that it needs first. */
static void begin_request(struct etcd_client *client)
{
	const struct etcd_client_config *config = client->config;
	AUTO(buf_done) struct buf login = BUF_INIT;
	client->logging_in = config->user && !*client->token;
	if (client->logging_in && etcd_put_authenticate(&login, config->user, config->password) < 0)
		buf_append_str(&login, "{}"); /* not UTF-8: etcd will not know the user */
	exchange_begin(client, &client->request, client->endpoint,
		       client->logging_in ? ETCD_PATH_AUTHENTICATE : buf_str(&client->path),
		       client->logging_in ? buf_str(&login) : buf_str(&client->body));
}

void etcd_client_ask(struct etcd_client *client, size_t endpoint, const char *path,
		     const char *body)
{
	client->endpoint = endpoint;
	buf_clear(&client->path);
	buf_append_str(&client->path, path);
	buf_clear(&client->body);
	buf_append_str(&client->body, body);
	client->token_is_new = false;
	begin_request(client);
}

void etcd_client_watch(struct etcd_client *client, size_t endpoint, const char *body)
{
	client->told = 0;
	exchange_begin(client, &client->watch, endpoint, ETCD_PATH_WATCH, body);
}

/* Why an exchange failed; NULL if it succeeded. */
static const char *failure(struct etcd_client *client, struct exchange *exchange, CURLcode code)
{
	const char *endpoint = client->config->endpoints.items[client->endpoint];
	const char *text = (const char *)buf_data(&exchange->answer);
	char answer[ETCD_REASON_MAX];
	long status = 0;
	curl_easy_getinfo(exchange->easy, CURLINFO_RESPONSE_CODE, &status);
	if (exchange->too_long) {
		snprintf(client->reason, sizeof(client->reason),
			 "%s: an answer of more than %zu bytes", endpoint, ETCD_ANSWER_MAX);
	} else if (code != CURLE_OK) {
		snprintf(client->reason, sizeof(client->reason), "%s: %s", endpoint,
			 *exchange->error ? exchange->error : curl_easy_strerror(code));
	} else if (status != HTTP_OK) {
		etcd_get_error(text, buf_len(&exchange->answer), answer);
		snprintf(client->reason, sizeof(client->reason), "%s: %s (status %ld)", endpoint,
			 *answer ? answer : "no reason given", status);
	} else {
		return NULL;
	}
	return client->reason;
}

/* The token may have expired, or the rights may have changed: with a user, log in again once after
 * every refusal. */
static bool log_in_again(struct etcd_client *client, CURLcode code)
{
	if (!*client->token || client->token_is_new || code != CURLE_OK)
		return false;
	client->token[0] = '\0';
	client->token_is_new = true;
	begin_request(client);
	return true;
}

static struct etcd_client_event failed(struct etcd_client *client)
{
	exchange_end(client, &client->request);
	return (struct etcd_client_event){ .what = ETCD_CLIENT_FAILED, .reason = client->reason };
}

/* The exchange of the request has ended. NOTHING: it goes on with another one. */
static struct etcd_client_event request_ended(struct etcd_client *client, CURLcode code)
{
	struct exchange *exchange = &client->request;
	struct err err = ERR_INIT;
	if (failure(client, exchange, code)) {
		if (!client->logging_in && log_in_again(client, code))
			return (struct etcd_client_event){ .what = ETCD_CLIENT_NOTHING };
		return failed(client);
	}
	const char *text = (const char *)buf_data(&exchange->answer);
	size_t len = buf_len(&exchange->answer);
	if (!client->logging_in) {
		exchange_end(client, exchange);
		return (struct etcd_client_event){ .what = ETCD_CLIENT_ANSWER,
						   .text = text,
						   .len = len };
	}
	if (etcd_get_token(text, len, client->token, &err) < 0) {
		snprintf(client->reason, sizeof(client->reason), "log-in: %s", err.msg);
		return failed(client);
	}
	begin_request(client);
	return (struct etcd_client_event){ .what = ETCD_CLIENT_NOTHING };
}

static struct etcd_client_event watch_ended(struct etcd_client *client, CURLcode code)
{
	const char *why = failure(client, &client->watch, code);
	exchange_end(client, &client->watch);
	return (struct etcd_client_event){ .what = ETCD_CLIENT_WATCH_DOWN,
					   .reason = why ? why : "etcd ended the watch" };
}

/* The next whole line of the watch; blank ones are left out. */
static struct etcd_client_event watch_line(struct etcd_client *client)
{
	struct buf *answer = &client->watch.answer;
	buf_consume(answer, client->told);
	client->told = 0;
	while (client->watch.easy && buf_len(answer) > 0) {
		const char *text = (const char *)buf_data(answer);
		const char *end = memchr(text, '\n', buf_len(answer));
		if (!end)
			break;
		size_t len = (size_t)(end - text);
		if (len == 0) {
			buf_consume(answer, 1);
			continue;
		}
		client->told = len + 1;
		return (struct etcd_client_event){ .what = ETCD_CLIENT_MESSAGE,
						   .text = text,
						   .len = len };
	}
	return (struct etcd_client_event){ .what = ETCD_CLIENT_NOTHING };
}

static struct etcd_client_event take_event(struct etcd_client *client)
{
	struct etcd_client_event event = watch_line(client);
	CURLMsg *msg;
	int left;
	while (event.what == ETCD_CLIENT_NOTHING &&
	       (msg = curl_multi_info_read(client->multi, &left))) {
		if (msg->msg != CURLMSG_DONE)
			continue;
		CURLcode code = msg->data.result;
		event = msg->easy_handle == client->watch.easy ? watch_ended(client, code)
							       : request_ended(client, code);
	}
	return event;
}

struct etcd_client_event etcd_client_wait(struct etcd_client *client, int fd, uint64_t deadline_ns)
{
	for (;;) {
		int running;
		curl_multi_perform(client->multi, &running);
		struct etcd_client_event event = take_event(client);
		uint64_t now_ns = clock_now_ns();
		if (event.what != ETCD_CLIENT_NOTHING || now_ns >= deadline_ns)
			return event;
		struct curl_waitfd extra = { .fd = fd, .events = CURL_WAIT_POLLIN };
		curl_multi_poll(client->multi, &extra, 1, clock_left_ms(deadline_ns, now_ns), NULL);
		if (extra.revents)
			return event;
	}
}
