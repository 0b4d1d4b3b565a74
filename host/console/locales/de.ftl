# Der Rahmen.
skip = Zum Inhalt
nav = Hauptmenü
inbox = Eingang
sign-in = Anmelden
sign-out = Abmelden
language = Sprache
api-docs = Dokumentation der API
to-inbox = Zurück zum Eingang

# Anmelden.
sign-in-demo = Dieser Host dient der Entwicklung. Wählen Sie, wer Sie sind:
sign-in-no-group = ohne Gruppe
sign-in-token = Mit einem Zugriffstoken anmelden
sign-in-token-field = Zugriffstoken
sign-in-token-help = Derselbe Token, den Programme an die API senden. Die Sitzung endet spätestens mit dem Token.
sign-in-no-token = Fügen Sie einen Zugriffstoken ein.
sign-in-refused = Der Token wurde nicht angenommen: { $detail }

# Zeitpunkte.
moment-now = gerade eben
moment-in-minutes = { $count ->
    [one] in { $count } Minute
   *[other] in { $count } Minuten
}
moment-in-hours = { $count ->
    [one] in { $count } Stunde
   *[other] in { $count } Stunden
}
moment-in-days = { $count ->
    [one] in { $count } Tag
   *[other] in { $count } Tagen
}
moment-ago-minutes = { $count ->
    [one] vor { $count } Minute
   *[other] vor { $count } Minuten
}
moment-ago-hours = { $count ->
    [one] vor { $count } Stunde
   *[other] vor { $count } Stunden
}
moment-ago-days = { $count ->
    [one] vor { $count } Tag
   *[other] vor { $count } Tagen
}

# Arbeit.
started-by = begonnen von { $who }
suspended = Angehalten
due = Fällig
since = Seit
with = Bei
offered-to = Angeboten an
held-by-you = Ihre
holder-for = { $owner } für { $other }
priority-number = Priorität { $number }
claim = Übernehmen
claim-of = Übernehmen: { $title }

# Der Eingang.
inbox-views = Ansichten
inbox-view-mine = Meine
inbox-view-available = Zu übernehmen
inbox-view-groups = Meine Gruppen
inbox-view-all = Alle
inbox-count = { $count ->
    [one] { $count } Aufgabe
   *[other] { $count } Aufgaben
}
inbox-count-more = Mehr als { $count } Aufgaben
inbox-filter = Filter
inbox-words = Wörter
inbox-definition = Ablauf
inbox-priority = Priorität ab
inbox-due-before = Fällig vor
inbox-sort = Reihenfolge
inbox-sort-created = Älteste zuerst
inbox-sort-due = Fälligste zuerst
inbox-more = Weitere Filter und Reihenfolge
inbox-apply = Anwenden
inbox-clear = Alle dieser Ansicht zeigen
inbox-see-available = Zeigen, was Sie übernehmen dürfen
inbox-empty-mine = Sie haben keine Aufgabe.
inbox-empty-available = Nichts wartet auf Sie. Neue Arbeit erscheint hier, sobald ein Ablauf sie Ihnen oder einer Ihrer Gruppen anbietet.
inbox-empty-groups = Keine Ihrer Gruppen hat Arbeit zu übernehmen. In welchen Gruppen Sie sind, weiß, wer das Verzeichnis verwaltet.
inbox-empty-all = Es gibt keine offene Aufgabe.
inbox-empty-filtered = Keine Aufgabe dieser Ansicht entspricht dem Filter.
pages = Seiten
first-page = Erste Seite
next-page = Nächste Seite

# Warum etwas nicht geht.
trouble-missing = Nicht gefunden
trouble-missing-detail = Unter dieser Adresse ist keine Seite. Der Link ist vielleicht alt oder unvollständig.
trouble-forbidden = Das dürfen Sie nicht
trouble-refused = Das geht jetzt nicht
trouble-failed = Hier ist etwas fehlgeschlagen
trouble-request = Für den Betrieb: Anfrage { $id }
trouble-foreign = Das Formular wurde nicht angenommen
trouble-foreign-detail = Es kam von einer anderen Website, oder Sie haben sich seit dem Laden der Seite neu angemeldet. Öffnen Sie die Seite erneut und wiederholen Sie, was Sie getan haben.

# Eine Instanz.
tabs = Teile der Seite
tab-timeline = Verlauf
tab-diagram = Diagramm
tab-data = Daten
tab-events = Ereignisse
tab-audit = Prüfprotokoll
tab-related = Verwandte
related-before = Beginnt neu
related-parent = Kind von
related-child = Eltern von
related-none = Sie beginnt keine Instanz neu und hat weder Eltern noch Kinder.
diagram-alt = Die Zustände und Übergänge des Ablaufs mit dem gegangenen Weg. Der Verlauf sagt dasselbe in Worten.
data-now = Die Daten des Ablaufs jetzt
completed = Abgeschlossen
cancelled = Abgebrochen
stopped-by = { $who }: { $reason }
about-instance = Begonnen von { $who }, { $when }. Ablauf { $flow }.
waits-for = Wartet auf { $who }
waits = Wartet
nobody = Niemand kann diese Arbeit jetzt tun. Der Betrieb muss sie jemandem geben.
needs-decisions = { $count ->
    [one] Braucht { $count } Entscheidung mit demselben Ergebnis.
   *[other] Braucht { $count } Entscheidungen mit demselben Ergebnis.
}
decided = { $who }: { $outcome }
decided-for = { $who } für { $other }: { $outcome }
left-by = { $trigger }, durch { $who }
left = { $trigger }
ended-with = Beendet: { $outcome }
ahead-certain = kommt noch
ahead-possible = kann noch kommen

# Handeln.
why-not = Was Sie jetzt nicht dürfen, und warum
refused-without-reason = Das geht jetzt nicht.
act-task-claim = Übernehmen
act-task-release = Zurückgeben
act-task-delegate = Delegieren
act-task-resolve = An die delegierende Person zurückgeben
act-task-reassign = Jemand anderem geben
act-task-reset = Neu anbieten
act-task-suspend = Aufgabe anhalten
act-task-resume = Aufgabe fortsetzen
act-instance-cancel = Instanz abbrechen
act-instance-suspend = Instanz anhalten
act-instance-resume = Instanz fortsetzen
act-instance-restart = Neu beginnen
field-reason = Grund
field-person = Person
required = nötig
optional = freiwillig
comment = Kommentar
what-will-happen = Was geschehen wird
what-next = Danach
what-stays = Geht weiter
what-waits-for = wartet auf
what-nothing = Nichts ändert sich: Es ist schon so.
ends-with = Die Instanz endet: { $outcome }
ends-cancelled = Die Instanz endet: Sie wird abgebrochen.
preview = Zeigen, was geschehen wird
confirm = Bestätigen: { $action }
leave = Nicht tun
form-mend = Einige Felder brauchen einen anderen Wert.
form-gone = Das ist nicht mehr offen
first-decided = { $who } war zuerst: { $outcome }
first-you = Das haben Sie schon entschieden: { $outcome }
first-acted = { $who } war zuerst
first-see-above = Was jetzt offen ist, steht oben.
done-task-decide = Ihre Entscheidung ist festgehalten.
done-task-claim = Die Aufgabe gehört Ihnen.
done-task-release = Die Aufgabe wird wieder angeboten.
done-task-delegate = Die Aufgabe ist delegiert.
done-task-resolve = Die Aufgabe ist wieder bei der delegierenden Person.
done-task-reassign = Die Aufgabe ist übergeben.
done-task-reset = Die Aufgabe wird neu angeboten.
done-task-suspend = Die Aufgabe ist angehalten.
done-task-resume = Die Aufgabe ist wieder offen.
done-instance-cancel = Die Instanz ist abgebrochen.
done-instance-suspend = Die Instanz ist angehalten.
done-instance-resume = Die Instanz geht weiter.
done-instance-restart = Eine neue Instanz hat begonnen.
done-instance-signal = Das Signal ist gesendet.

# Die weiteren Seiten.
start = Beginnen
start-choose = Wählen Sie, was Sie beginnen.
start-none = Es gibt keinen Ablauf, der beginnen könnte.
start-entity-type = Art des Gegenstands
start-entity-id = Id des Gegenstands
done-instance-start = Die Instanz hat begonnen.
notifications = Mitteilungen
notifications-none = Es gibt keine Mitteilungen für Sie oder Ihre Gruppen.
notification-assigned = Angeboten oder zugewiesen
notification-reminder = Erinnerung
notification-escalated = Eskaliert
notification-decided = Entschieden
unread = ungelesen
mark-read = Als gelesen markieren
mark-read-of = Als gelesen markieren: { $title }
search = Suche
search-hint = Suche (Strg K)
search-help = Suchen Sie nach Wörtern aus Titeln und Zusammenfassungen, nach Ids von Gegenständen und nach Personen.
search-none = Nichts entspricht „{ $words }“.
search-instances = Instanzen
search-people = Personen
status-running = Läuft
status-suspended = Angehalten
status-completed = Abgeschlossen
status-cancelled = Abgebrochen
inbox-news = { $count ->
    [one] { $count } neue Aufgabe – zeigen
   *[other] { $count } neue Aufgaben – zeigen
}
none = keine
me = Ich
me-id = Id
me-tenant = Mandant
me-groups = Gruppen
me-manager = Vorgesetzte Person
me-roles = Rollen
me-permissions = Was die Rollen erlauben
me-absences = Abwesenheiten
me-absences-none = Sie sind nicht abwesend und vertreten niemanden.
me-absent = Sie sind abwesend; { $substitute } vertritt Sie.
me-stands-in = Sie vertreten { $person }.
me-sessions = Wo Sie angemeldet sind
session-begun = angemeldet
session-used = zuletzt benutzt
session-ends = endet
session-this = Dieser Browser
session-end = Dort abmelden

# Tasten.
keys = Tasten
keys-move = nächste und vorige Aufgabe einer Liste
keys-open = die Aufgabe öffnen
keys-decide = das erste und das zweite Ergebnis
keys-comment = den Kommentar schreiben
keys-search = suchen
keys-help = diese Hilfe
close = Schließen
