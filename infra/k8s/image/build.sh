#!/bin/sh
# Builds the debug image for amd64 and arm64, pushes it, and prints its name by digest: the value of debugPods.image in netcheck.yaml and of generate.ts --image.
# usage: BASE=name@sha256:… build.sh NAME:VERSION      (docker with buildx; podman: see docs/kubernetes.md)
set -eu
name=${1:?usage: BASE=name@sha256:… build.sh NAME:VERSION}
case ${BASE:-} in
  *@sha256:????????????????????????????????????????????????????????????????) ;;
  *)
    echo "build.sh: BASE must name a Debian 12 slim image by its digest (name@sha256:…)" >&2
    exit 2
    ;;
esac
# the last part has a tag, and the tag says which version it is
case ${name##*/} in
  *:latest | *@*) bad=yes ;;
  *:?*) bad= ;;
  *) bad=yes ;;
esac
if [ -n "$bad" ]; then
  echo "build.sh: $name: give it a version (name:1.4.0), not latest" >&2
  exit 2
fi
about=$(mktemp)
trap 'rm -f "$about"' EXIT
docker buildx build --platform linux/amd64,linux/arm64 --build-arg "BASE=$BASE" --build-arg "SNAPSHOT=${SNAPSHOT:-}" \
  --provenance=true --sbom=true --tag "$name" --metadata-file "$about" --push "$(dirname "$0")"
digest=$(sed -n 's/.*"containerimage.digest": *"\(sha256:[0-9a-f]*\)".*/\1/p' "$about")
[ -n "$digest" ] || { echo "build.sh: docker did not say the image's digest" >&2; exit 1; }
echo "${name%:*}@$digest"
