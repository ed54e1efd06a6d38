"""Test errors of shells and of the C library in other languages than English."""

from tests.unit.engine.logs.test_root import told
from tests.unit.tables import every_row

STEPS_BEFORE = "step 1 loss 0.41\nstep 2 loss 0.38\n"


@every_row(
    ("line", "class_"),
    [
        ("./job.sh: Zeile 7: trian.py: Kommando nicht gefunden.", "program-start"),
        ("./job.sh: line 7: gmx_mpi\u00a0: commande introuvable", "program-start"),
        ("cat: labels.csv: Datei oder Verzeichnis nicht gefunden", "file-system-or-quota"),
        (
            "cp: no se puede efectuar `stat' sobre 'a.h5': No existe el fichero o el directorio",
            "file-system-or-quota",
        ),
        ("mkdir: /scratch/run: Permesso negato", "file-system-or-quota"),
        ("touch: a.log: Aucun espace disponible sur le périphérique", "file-system-or-quota"),
        ("./job.sh: ligne 9 : 2417 Erreur de segmentation  ./solver", "signal"),
        ("./a: Falha de segmentação", "signal"),
        ("./a: Violación de segmento", "signal"),
        ("cat: a: Permissão recusada", "file-system-or-quota"),
        ("cp: a: Se ha excedido la cuota de disco", "file-system-or-quota"),
    ],
)
def test_errors_of_the_shell_in_other_languages_are_read(line, class_):
    assert told(f"{STEPS_BEFORE}{line}\nsrun: error: node1: task 0: Exited with exit code 1\n")[:2] == (
        line,
        class_,
    )
