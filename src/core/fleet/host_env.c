#include "core/fleet/host_env.h"

#include "base/str.h"

static const char *const own_names[] = {
	"HOME",	      "USER",	      "LOGNAME", "SHELL",    "MAIL",	"PWD",
	"OLDPWD",     "SHLVL",	      "_",	 "HOSTNAME", "HOST",	"TMPDIR",
	"TMP",	      "TEMP",	      "DISPLAY", "WINDOW",   "STY",	"TMUX",
	"TERM",	      "LINES",	      "COLUMNS", "TTY",	     "GPG_TTY", "WAYLAND_DISPLAY",
	"KRB5CCNAME", "MUSTER_TOKEN",
};

static const char *const own_prefixes[] = { "SSH_",	     "XDG_",  "DBUS_",
					    "MUSTER_FLEET_", "SUDO_", "BASH_FUNC_" };

bool fleet_exports(const char *variable)
{
	size_t len = strcspn(variable, "=");
	if (len == 0 || !variable[len])
		return false;
	for (size_t i = 0; i < ARRAY_LEN(own_names); i++)
		if (strlen(own_names[i]) == len && strncmp(variable, own_names[i], len) == 0)
			return false;
	for (size_t i = 0; i < ARRAY_LEN(own_prefixes); i++)
		if (str_starts(variable, own_prefixes[i]))
			return false;
	return true;
}
