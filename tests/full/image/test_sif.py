"""Test how toolkit's SIF differs from Apptainer's SIF of the same image."""

import json
import os
import re
from pathlib import Path

import pytest

from toolkit.image.sifs import sif
from toolkit.image.sifs.packing import PACKINGS, packing
from toolkit.model.progress import Silent
from toolkit.run.docker import base
from toolkit.run.docker.builder import BUILDER, contained_apptainer
from toolkit.run.docker.containers import Box, run_once
from toolkit.run.docker.engine import BuildOptions, build_image, forget_image, tag_image

TAG = "toolkit/odd-one:latest"
ODD = r"""
FROM {base} AS whole
RUN mkdir -p /r/tmp /r/usr/bin /r/odd /r/etc /r/var /r/opt/app && cp -a /bin /sbin /lib* /r/ \
    && cp -a /usr/bin/dash /usr/bin/sh /usr/bin/env /usr/bin/cat /usr/bin/pwd /r/usr/bin/ \
    && cp -a --parents /usr/lib/*-linux-gnu/ld-linux* /usr/lib/*-linux-gnu/libc.so.6 /usr/lib64 /r/ \
    && cp /usr/lib/os-release /r/etc/os-release && ln -s ../tmp /r/var/tmp \
    && echo content > "/r/odd/a name with  spaces" && ln "/r/odd/a name with  spaces" /r/odd/linked \
    && mkfifo /r/odd/pipe && : > /r/odd/none && chmod 4751 /r/odd/none && chown 1234:5678 /r/odd/none \
    && mkdir -m 0700 /r/odd/closed && echo secret > /r/odd/closed/file && chmod 000 /r/odd/closed/file \
    && head -c 3000000 /dev/zero > /r/odd/zeros && head -c 300000 /usr/bin/dash > /r/odd/half \
    && touch -h -d @1 /r/odd/linked && echo old > /r/etc/hosts && echo there > /r/etc/hostname \
    && printf '#!/bin/sh\nexec env -0\n' > /r/opt/app/show && chmod +x /r/opt/app/show
FROM scratch
COPY --from=whole /r/ /
LABEL toolkit=test odd="a \"quoted\" label"
ENV ODD='a "b" $HOME }} c' EMPTY= PLAIN=x PATH=/opt/app:/usr/bin:/bin
VOLUME /odd
WORKDIR /opt/app
USER 1234
ENTRYPOINT ["env", "A=b c"]
CMD ["cat", "/odd/a name with  spaces"]
"""
LOOK = r"""
set -e
apptainer() { command apptainer --silent "$@"; }
offset() { apptainer sif list $1 | sed -nE 's/.*\|([0-9]+)-[0-9]+ +\|FS .*/\1/p'; }
for name in theirs ours; do
    unsquashfs -q -n -dest /tmp/$name -offset "$(offset /work/$name.sif)" /work/$name.sif > /dev/null
    (cd /tmp/$name
     find . -path ./.singularity.d -prune -o -path './dev/*' -prune -o -printf '%p %y %m %U:%G %l\n' |
        sort > ../$name.list
     find . -path ./.singularity.d -prune -o -type f ! -path ./etc/hostname -print0 | sort -z |
        xargs -0 sha256sum > ../$name.sums
     find ./.singularity.d -printf '%p %y %m\n' | sort > ../$name.added)
done
diff /tmp/theirs.list /tmp/ours.list > /tmp/list.diff || true
diff /tmp/theirs.sums /tmp/ours.sums
diff /tmp/theirs.added /tmp/ours.added > /tmp/added.diff || true
cat /tmp/list.diff; echo ==; cat /tmp/added.diff; echo ==
for name in theirs ours; do
    sif=/work/$name.sif
    apptainer sif list $sif | grep -oE '(Def.FILE|JSON.Generic|FS .*)$' | tr '\n' ';'; echo
    apptainer inspect --json $sif | tr -d '\n'; echo
    apptainer inspect --deffile $sif | tr '\n' ';'; echo
    apptainer exec -u --cleanenv $sif env | grep -E '^(EMPTY|PLAIN|PATH|A|LD_LIBRARY_PATH)=' |
        sort | tr '\n' ';'; echo
    APPTAINERENV_PLAIN=mine APPTAINERENV_PREPEND_PATH=/first apptainer exec -u --cleanenv $sif env |
        grep -E '^(PLAIN|PATH)=' | sort | tr '\n' ';'; echo
    apptainer run -u --cleanenv $sif | tr '\n' ';'; echo
    apptainer run -u --cleanenv --no-eval $sif sh -c 'echo "$A $0 $1"' "a b" '$HOME' | tr '\n' ';'; echo
    WHO=me apptainer run -u $sif cat '/odd/linked' | tr '\n' ';'; echo
    echo 'echo "shell $PLAIN"' | apptainer shell -u --cleanenv $sif | tr '\n' ';'; echo
    echo ==
done
apptainer exec -u --cleanenv /work/ours.sif sh -c 'echo "$ODD"'
"""


@pytest.fixture(scope="module")
def odd(engine):
    foundation = base.ensure_base(engine, "bookworm", "debian:bookworm-slim", Silent()).reference
    files = {"Dockerfile": ODD.format(base=foundation).encode()}
    image = build_image(engine, files, "the odd one", Silent(), BuildOptions())
    tag_image(engine, image, TAG)
    contained_apptainer(engine, Silent())
    yield TAG
    engine.images.remove(TAG, force=True)
    forget_image(engine, image)


def test_it_means_the_same_as_the_one_that_apptainer_builds(engine, odd, tmp_path):
    sif.convert(engine, odd, tmp_path / "ours.sif", Silent())
    # Convert as users would: save the image as an archive, and run Apptainer with its default settings.
    (tmp_path / "odd.tar").write_bytes(b"".join(engine.images.get(odd).save(named=True)))
    script = f"apptainer -q build /work/theirs.sif docker-archive:/work/odd.tar && {{\n{LOOK}}}"
    box = Box(BUILDER, binds={str(tmp_path): "/work"}, nested=True)
    ran = run_once(engine, box, ("bash", "-c", script))
    assert ran.ok, ran.lines
    files, added, theirs, ours = sections(ran.lines)
    # Expect two differences: Apptainer keeps a layer's host name file, and the engine adds a link to the
    # mount table.
    assert files == ["> ./etc/mtab l 777 0:0 /proc/mounts"]
    assert added == ["< ./.singularity.d/env/94-appsbase.sh f 755"]
    assert len(theirs) == len(ours) == 9
    inspected = [json.loads(lines.pop(1))["data"]["attributes"]["labels"] for lines in (theirs, ours)]
    differ = {name for name, value in inspected[0].items() if inspected[1].get(name) != value}
    assert differ == {
        "org.label-schema.build-date",
        "org.label-schema.usage.apptainer.version",
        "org.label-schema.usage.singularity.deffile.bootstrap",
        "org.label-schema.usage.singularity.deffile.from",
    }
    theirs.pop(1), ours.pop(1)
    assert theirs == ours
    assert "content;" in ours
    # Here, Apptainer 1.4 prints \\"b\\" and the caller's home folder.
    assert ran.lines[-1] == 'a "b" $HOME } c'


def sections(lines):
    """Return the lines between the lines ``==``, without diff's line numbers such as ``3c4``."""
    found = [[]]
    for line in lines:
        if line == "==":
            found.append([])
        elif line and not re.match(r"\d+(,\d+)?[acd]\d+", line):
            found[-1].append(line)
    return found[:-1]


@pytest.mark.parametrize("purpose", [known.name for known in PACKINGS])
def test_two_conversions_give_the_same_bytes_wherever_they_are_made(engine, odd, tmp_path, purpose):
    made = []
    for folder in (tmp_path / "one", tmp_path / "another folder"):
        folder.mkdir()
        target = folder / f"{folder.name}.sif"
        made.append(sif.convert(engine, odd, target, Silent(), packing=packing(purpose)).sha256)
    assert made[0] == made[1]


def test_apptainer_signs_and_verifies_it(engine, odd, tmp_path):
    made = sif.convert(engine, odd, tmp_path / "a.sif", Silent())
    script = (
        "apptainer key newpair --name a --email a@b.example --password '' --push=false\n"
        "apptainer sign --keyidx 0 /work/a.sif && apptainer verify --local /work/a.sif"
    )
    box = Box(BUILDER, binds={str(tmp_path): "/work"}, nested=True)
    ran = run_once(engine, box, ("bash", "-c", script))
    assert ran.ok, ran.lines
    assert any("verified" in line.lower() for line in ran.lines)
    assert Path(made.path).stat().st_uid == os.getuid()
