"""Remembers the city that the user named."""

from jackfield import Choice, Description, Folded, PolicyError, Slot, Transition, beside


class Policy:
    description = Description("{{name}}", "0.1.0", beside(__file__), dialog_schema=1)

    def __init__(self, config):
        self.cities = [(city, Folded(city)) for city in config["cities"]]
        self.forget = [Folded(word) for word in config.get("forget", [])]

    def extract(self, turn, recent, dialog):
        if not recent:
            raise PolicyError("there is no message")
        text = Folded(recent[-1].text)
        if any(text.find(word) for word in self.forget):
            return Transition(state="", clear=["city"])
        for city, folded in self.cities:
            at = text.find(folded)
            if at:
                return Transition(state="city-known", set=[Slot("city", Choice(city), source=at)])
        return None
