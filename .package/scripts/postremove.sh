#!/bin/sh
# Runs after a removal, on Debian ("remove", "purge", "upgrade") and on RPM systems (0 or 1).
set -e

if [ -d /run/systemd/system ]; then
    systemctl daemon-reload
fi
# The data stays, also after a purge, and so does the user who owns it.
if [ "$1" = purge ]; then
    rm -f /etc/default/journeyman
    # dpkg has removed the configuration file. Secrets that an administrator put there stay.
    rmdir --ignore-fail-on-non-empty /etc/journeyman 2>/dev/null || true
    if [ -d /var/lib/journeyman ] && ! rmdir /var/lib/journeyman 2>/dev/null; then
        echo "journeyman: the data in /var/lib/journeyman stays; rm -r /var/lib/journeyman removes it"
    fi
fi
