"""Two reviews of a document; a rejected one goes back to its author."""

from dataclasses import dataclass

from wrkflw import Assignment, Facts, Flow, Graph, export, own_work, task, terminal, to_group, to_user, way


@dataclass
class Config:
    """The groups that take part, and whether a rejection has to say why."""

    initiators: str = "authors"
    reviewers: str = "reviewers"
    approvers: str = "approvers"
    rejection_needs_comment: bool = True


@dataclass
class Document:
    """The part of the document that the logic needs: its title."""

    title: str


class DocumentApproval(Flow[Config, Document]):
    def graph(self, config: Config) -> Graph:
        rework = way("ReworkRequested", comment="required" if config.rejection_needs_comment else "optional")
        return Graph(
            title="Document approval",
            description="Two reviews; a rejected document goes back to its author.",
            instance_title="{/title}",
            initiators=[config.initiators],
            schema={
                "type": "object",
                "properties": {"title": {"type": "string"}, "link": {"type": "string"}},
                "required": ["title"],
            },
            start="Submitted",
            states={
                "Submitted": task("First review", {"APPROVE": "FinalReview", "REJECT": rework}),
                "FinalReview": task("Final review", {"APPROVE": "Approved", "REJECT": rework}),
                "ReworkRequested": own_work(
                    "Rework",
                    {"SUBMIT": "Submitted", "ABANDON": "Rejected"},
                    description="The author changes the document as the rejection says, or gives it up.",
                ),
                "Approved": terminal("APPROVED"),
                "Rejected": terminal("REJECTED"),
            },
        )

    def assign(self, facts: Facts[Config, Document], state: str) -> Assignment:
        match state:
            case "Submitted":
                return to_group(facts.config.reviewers)
            case "FinalReview":
                return to_group(facts.config.approvers)
            case _:
                return to_user(facts.initiator)


Logic = export(DocumentApproval)
