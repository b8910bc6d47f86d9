#!/bin/sh
# The debug image's root file system from Debian's packages alone, for where no base image can be pulled: the same packages as infra/k8s/image/Dockerfile.
# usage: image.sh FOLDER   (root or user namespaces; mmdebstrap). An image that is there already, of the same list and script, is kept.
set -eu
folder=${1:?folder}
here=$(dirname "$(readlink -f "$0")")
source=$here/../../infra/k8s/image
key=$(cat "$0" "$source/packages.txt" "$source/finish.sh" | sha256sum)
if [ "$(cat "$folder.key" 2>/dev/null)" = "$key" ]; then exit 0; fi
rm -rf "$folder"
# --variant=essential: what every Debian has, without apt. The hooks merge /usr beforehand: a program that does it later brings 50 MB of perl.
# Documentation is left out, as in Debian's slim images
# shellcheck disable=SC2016  # mmdebstrap's hooks get the folder as $1
mmdebstrap --quiet --variant=essential --hook-dir=/usr/share/mmdebstrap/hooks/merged-usr --include="$(paste -sd, "$source/packages.txt")" \
  --dpkgopt='path-exclude=/usr/share/man/*' --dpkgopt='path-exclude=/usr/share/locale/*' --dpkgopt='path-exclude=/usr/share/doc/*' \
  --customize-hook="copy-in $source/finish.sh /" --customize-hook='chroot "$1" /bin/sh /finish.sh' --customize-hook='rm "$1/finish.sh"' \
  bookworm "$folder"
printf '%s' "$key" >"$folder.key"
