def average(prices):
    total = 0
    for price in prices:
        total += price
    return total / len(prices)


def add_item(item, basket=[]):
    basket.append(item)
    return basket


def find(items, name):
    for item in items:
        if item["name"] is name:
            return item
